"""Drives watches to their end without a broker: ticks, makes what is to be made, and measures with a made-up node.

Nothing here was measured. What each cell takes follows from its runtime and session options, with noise from a seed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Release, Watch
from farm.alerts.services.deliveries import send_due_hints
from farm.alerts.tasks import DUTIES
from farm.contract import reports
from farm.contract.blocks import ArmOrder
from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry.models import Model, Preparation, Variant, Version
from farm.registry.states import MakingState
from farm.runs.models import Run
from farm.runs.services import release_ready_blocks
from farm.runs.states import RunState
from tests.integration.dashboard.rows import MadeUpNode
from tests.integration.dashboard.written_again import made_once

MATRIX = {"batch": [1], "precision": ["fp32"], "threads": [1]}
MOST_STEPS = 60


class Lab(MadeUpNode):
    """A node whose latency is a function of the cell, and whose checks can be made to differ by runtime."""

    def __init__(
        self,
        node: Node,
        *,
        p50_ms: Callable[[CellSpec], float] = lambda spec: 1.0,
        checks: Callable[[CellSpec], Mapping[str, Any]] = lambda spec: {},
        seed: int = 7,
    ) -> None:
        super().__init__(node, slow={})
        self.random.seed(seed)
        self.latency = p50_ms
        self.changes = checks

    def _p50_ms(self, spec: CellSpec) -> float:
        return self.latency(spec)

    def _check(self, arm: ArmOrder) -> reports.CheckReport:
        return super()._check(arm).model_copy(update=dict(self.changes(arm.cell)))

    def _sample(self, spec: CellSpec) -> reports.Sample:
        own = {name: value for name, value in self.changes(spec).items() if name in reports.Sample.model_fields}
        return super()._sample(spec).model_copy(update=own)

    def live(self, *, steps: int = MOST_STEPS) -> None:
        """Ticks and measures until nothing is open any more."""
        for _ in range(steps):
            moved = sum(duty() for duty in DUTIES if duty is not send_due_hints)
            make_ready()
            opened = list(Run.objects.exclude(state=RunState.FINISHED))
            for run in opened:
                self.measure(run)
            if not opened and not moved:
                return
        raise AssertionError(f"not at rest after {steps} steps: {list(Run.objects.values('state', 'sentence'))}")


def make_ready() -> None:
    """What the `prepare` workers would do."""
    ready = {"state": MakingState.READY, "finished_at": timezone.now()}
    for variant in Variant.objects.exclude(state=MakingState.READY).select_related("artifact"):
        Variant.objects.filter(pk=variant.pk).update(derived=variant.artifact, **ready)
    for one in Preparation.objects.exclude(state=MakingState.READY).select_related("artifact"):
        blob = one.artifact.files.first().blob
        Preparation.objects.filter(pk=one.pk).update(inputs=blob, reference=blob, reference_of="expected", **ready)
    release_ready_blocks()


def offer(*versions: str, distribution: str = "onnxruntime") -> None:
    """These releases, and no others, are on the index."""
    from farm.alerts.services.index import store_releases

    store_releases(distribution, versions)
    assert Release.objects.filter(distribution=distribution, is_gone=False).count() == len(versions)


def make_watch(version: Version, by: User, *, name: str = "upgrades", **how: Any) -> Watch:
    """A watch of the version's model, pinned to 1.29.0."""
    from farm.alerts.services.watches import create_watch

    known: dict[str, Any] = {"reference": "1.29.0", "matrix": MATRIX, "watched": [version.model]}
    team: Team = version.model.team
    return create_watch(team=team, by=by, name=name, **{**known, **how})


def slower_from(first: str, factor: float = 1.24) -> Callable[[CellSpec], float]:
    """A latency that steps up with a release."""
    from farm.rules.runtimes.order import release_order

    def latency(spec: CellSpec) -> float:
        is_late = release_order(spec.runtime.version) >= release_order(first)
        return factor if is_late else 1.0

    return latency


def slower_alert(node: Node) -> Alert:
    """The alert of 1.30.0, which is slower than 1.29.0, with all that was looked into."""

    def make() -> int:
        offer("1.29.0", "1.30.0")
        Lab(node, p50_ms=slower_from("1.30.0")).live()
        return Alert.objects.get().pk

    return Alert.objects.get(pk=made_once(make, how=("slower_alert", node.pk)))


def failing_on(*versions: str, code: ReasonCode = ReasonCode.CRASHED, text: str = "It died.") -> Any:
    """What the checks of these releases say."""
    reason = Reason(code=code, text=text)

    def changes(spec: CellSpec) -> Mapping[str, Any]:
        return {"reason": reason} if spec.runtime.version in versions else {}

    return changes


def labelled(model: Model, *labels: str) -> None:
    """Gives a model labels."""
    Model.objects.filter(pk=model.pk).update(labels=list(labels))
