"""Says hello to the farm, at the start, every minute and at the end, and renews the node's secret."""

import logging
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Literal

from farm.contract import node as messages
from farm.contract.reports import Facts
from farm.contract.version import CONTRACT_VERSION
from worker.agent.abilities.probes import Abilities
from worker.agent.connection import enrolment
from worker.agent.connection import gateway as farm
from worker.agent.connection.mailbox import compute_backoff_s
from worker.agent.home import Identity, NodeHome
from worker.agent.installation.runtimes import Installed

logger = logging.getLogger(__name__)

State = Literal["idle", "measuring", "leaving"]


class Presence:
    """Tells the farm what this node is and does. `block` returns the number of the block that is measured, or None.

    `waits_for` says in words what keeps the node from measuring; it is valid until `waits_until` of the monotonic
    clock, and `doing` is empty after that. `tried` is the result of a trial, until the farm has it. `settings` are the
    farm's for this node, and the defaults until its first answer.
    """

    def __init__(
        self,
        home: NodeHome,
        gateway: farm.Gateway,
        identity: Identity,
        *,
        facts: Callable[[], Facts],
        runtimes: Callable[[], tuple[Installed, ...]],
        block: Callable[[], str | None],
        log_tail: Callable[[], str],
    ) -> None:
        self._home, self._gateway, self._identity = home, gateway, identity
        self._facts, self._runtimes, self._block, self._log_tail = facts, runtimes, block, log_tail
        self.abilities = Abilities()
        self.waits_for, self.waits_until = "", inf
        self.tried: messages.Tried | None = None
        self._welcome: messages.Welcome | None = None
        self._changed = threading.Event()

    @property
    def settings(self) -> messages.NodeSettings:
        return self._welcome.settings if self._welcome else messages.NodeSettings()

    @property
    def doing(self) -> str:
        return self.waits_for if time.monotonic() < self.waits_until else ""

    def say_hello(self, *, is_leaving: bool = False) -> messages.Welcome:
        """Send one hello. Store the farm's answer, and return it. Raises GatewayError."""
        block, installed = self._block(), self._runtimes()
        state: State = "leaving" if is_leaving else "measuring" if block else "idle"
        trial_result = self.tried
        welcome = self._gateway.hello(
            messages.Hello(
                contract_version=CONTRACT_VERSION,
                facts=self._facts(),
                tags=self.abilities.tags,
                providers=self.abilities.providers,
                runtimes=tuple(entry.runtime for entry in installed),
                loads={str(entry.runtime): entry.loads for entry in installed if entry.loads is not None},
                state=state,
                block=block,
                log_tail=self._log_tail(),
                self_test=self.abilities.self_test,
                doing=self.doing[: messages.MAX_DOING],
                tried=trial_result,
            )
        )
        if self.tried is trial_result:
            self.tried = None
        if welcome.sentence and (self._welcome is None or welcome.sentence != self._welcome.sentence):
            logger.warning("The farm says: %s", welcome.sentence)
        elif self._welcome and self._welcome.sentence and not welcome.sentence:
            logger.info("The farm gives this node blocks again.")
        self._welcome = welcome
        return welcome

    def request_hello(self) -> None:
        self._changed.set()

    def run(
        self,
        *,
        stop: threading.Event,
        on_welcome: Callable[[messages.Welcome], None],
        on_refused: Callable[[str], None],
    ) -> None:
        """Say hello every `settings.hello_every_s` seconds, and at once after request_hello(), until `stop` is set.

        Call it in a thread. The first hello waits like the others. Before a hello, a secret that is due is renewed.
        `on_welcome` is called with each answer. A hello that fails is logged and sent again after a pause. When the
        farm does not know this node any more, `on_refused` is called and the loop ends.
        """
        failures = 0
        while not stop.is_set():
            self._changed.wait(compute_backoff_s(failures) if failures else self.settings.hello_every_s)
            self._changed.clear()
            if stop.is_set():
                return
            try:
                self._renew_secret()
                on_welcome(self.say_hello())
                failures = 0
            except farm.NodeUnknownError as problem:
                on_refused(str(problem))
                return
            except (farm.GatewayError, OSError) as problem:  # OSError: the disk is full
                failures += 1
                logger.warning("A heartbeat failed: %s", problem)

    def _renew_secret(self) -> None:
        grant = self._home.load_secret()
        if grant is None or enrolment.is_renewal_due(grant):
            enrolment.renew_secret(self._home, self._gateway, self._identity)
            logger.info("This node's secret was renewed.")
