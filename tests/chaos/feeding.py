"""Work for the farm: small runs of one block, and the owner who lets nodes work again."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.db import InterfaceError, OperationalError, connection

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.fleet.services import resume
from farm.fleet.states import NodeHealth
from farm.registry.models import Preparation, Version
from farm.registry.services import receive_upload
from farm.registry.states import MakingState, VersionState
from farm.registry.storage import copy_to_draft
from farm.runs.models import Block
from farm.runs.services import start_run
from tests.chaos.farm import patiently
from tests.chaos.visitors import MATRIX

MODEL = Path(__file__).parents[1] / "models" / "cnn_dyn.onnx"


class Feeder:
    """Starts runs, and is the owner of the nodes."""

    def __init__(self, *, blocks: int, agents: int, matrix: Mapping[str, Any] = MATRIX) -> None:
        self._blocks, self._agents, self._matrix = blocks, agents, matrix
        self._owner = User.objects.get()
        self._team = Team.objects.get()
        self._version = self._uploaded()
        self.fed = 0
        self.resumed = 0

    def _uploaded(self) -> Version:
        """A real model, inspected by the farm's own prepare worker."""
        version = receive_upload(user=self._owner, files=[copy_to_draft(MODEL)])
        ready = Version.objects.filter(pk=version.pk, state=VersionState.READY)
        _wait(ready.exists, for_what="the prepare worker did not inspect the model")
        return ready.get()

    def wait_for_nodes(self, *, within_s: float = 60.0) -> None:
        active = Node.objects.seen_and_active
        _wait(lambda: active().count() >= self._agents, for_what="the agents did not say hello", within_s=within_s)
        # inputs are made once, before the first fault
        start_run(version=self._version, matrix=self._matrix, requested_by=self._owner)
        self.fed += 1
        open_rows = Preparation.objects.exclude(state=MakingState.READY)
        _wait(lambda: not open_rows.exists(), for_what="the prepare worker did not make the inputs")

    def feed_up_to(self, count: int) -> None:
        """Starts runs until there are so many; a database that is away is asked again."""
        while self.fed < min(count, self._blocks):
            patiently(self.feed)

    def feed(self) -> None:
        """Starts one run more, unless there are enough."""
        # counted first: an order that failed half way may have written its run
        self.fed = Block.objects.count()
        if self.fed < self._blocks:
            start_run(version=self._version, matrix=self._matrix, requested_by=self._owner)
            self.fed += 1

    def resume_quarantined(self) -> None:
        """A person looks at a node that was put aside and lets it work again."""
        try:
            for node in Node.objects.filter(health=NodeHealth.QUARANTINED):
                resume(node=node, by=self._owner)
                self.resumed += 1
        except (OperationalError, InterfaceError):
            connection.close()


def _wait(is_true: Callable[[], bool], *, for_what: str, within_s: float = 60.0) -> None:
    limit = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < limit, for_what
        time.sleep(0.2)
