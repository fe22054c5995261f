"""Rows of watches and alerts for pages. `found_by_a_watch` goes the whole way through the services; others are bare."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from farm.accounts.models import User
from farm.alerts.models import Alert, Point, Symptom, Watch, WatchRound
from farm.alerts.states import AlertEventKind, AlertState, Cause, RoundOutcome, RoundState
from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.integration.alerts.driving import Lab, make_watch, offer, slower_from

WANTED = "BiasSoftmaxFusion"
SENTENCE = "ONNX Runtime {bad} runs {model} (CPU, fp32, batch 1, 1 thread) 24 % slower than {good} on {node} "
SENTENCE += "(95 % interval 21–26 %, 8 rounds)."


def found_by_a_watch(version: Version, node: Node, by: User, **how: Any) -> Alert:
    """1.30.0 is a quarter slower, through two nodes; leaving one optimizer out undoes it."""
    offer("1.29.0", "1.30.0")
    make_watch(version, by, **how)
    slow = slower_from("1.30.0")

    def latency(spec: CellSpec) -> float:
        return 1.0 if WANTED in spec.session.disabled_optimizers else slow(spec)

    lab = Lab(node, p50_ms=latency)
    lab.slow = {"onnxruntime==1.30.0": 1.24}
    lab.live()
    return Alert.objects.get()


def bare_round(watch: Watch, version: Version, **how: Any) -> WatchRound:
    """A judged round without a run."""
    known: dict[str, Any] = {
        "cause": Cause.RELEASE, "key": f"release:{WatchRound.objects.count()}", "old": "1.29.0", "new": "1.30.0",
        "pinned": watch.reference, "state": RoundState.JUDGED, "outcome": RoundOutcome.QUIET, "compared": 1,
        "sentence": "1 pair compared, no changes to report.", "judged_at": timezone.now(),
    }  # fmt: skip
    return WatchRound.objects.create(watch=watch, version=version, **{**known, **how})


def bare_alert(watch: Watch, version: Version, *, node: str = "bench-1", bad: str = "1.30.0", **how: Any) -> Alert:
    """An alert that no run stands behind, with one symptom unless it is of the farm's own."""
    how.setdefault("sentence", SENTENCE.format(bad=bad, good="1.29.0", node=node, model=version.model.name))
    alert = Alert.objects.create(
        team=watch.team, watch=watch, model=version.model, version=version, node=node, distribution="onnxruntime",
        good="1.29.0", bad=bad, hardware="cpu", **how,
    )  # fmt: skip
    alert.log(AlertEventKind.INFRA if how.get("state") == AlertState.INFRA else AlertEventKind.OPENED, alert.sentence)
    if node:
        Symptom.objects.create(
            alert=alert, node=node, series="s1", kind="slower",
            label=f"{version.model.name}, CPU, fp32, batch 1, 1 thread", text=alert.sentence, size=1.24,
            baseline="c1", cell="c2",
            explanation="LayerNormalization: 2 nodes, 81 → 310 µs, explains 96 % of the change",
        )  # fmt: skip
    return alert


def long_series(watch: Watch, version: Version, count: int, *, step_at: int, series: str = "s1", **how: Any) -> None:
    """So many rounds of one series; from `step_at` on a quarter slower."""
    start = timezone.now() - timedelta(hours=count)
    made = WatchRound.objects.bulk_create(
        WatchRound(
            watch=watch, version=version, cause=Cause.SCHEDULE, key=f"{series}:{place}", old="1.29.0",
            new="1.31.1" if place >= step_at else "1.30.0", pinned="1.29.0", state=RoundState.JUDGED,
            outcome=RoundOutcome.QUIET, compared=1, judged_at=start + timedelta(hours=place),
        )
        for place in range(count)
    )  # fmt: skip
    label = how.get("label", f"{version.model.name}, CPU, fp32, batch 1, 1 thread")
    Point.objects.bulk_create(
        Point(
            round=one, watch=watch, series=series, node=how.get("node", "bench-1"), label=label,
            runtime=f"onnxruntime=={one.new}", at=start + timedelta(hours=place),
            **_ratio((1.24 if place >= step_at else 1.0) * (1 + 0.002 * ((place * 7919) % 5 - 2))),
        )
        for place, one in enumerate(made)
    )  # fmt: skip


def _ratio(value: float) -> dict[str, float]:
    return {"ratio": value, "low": value * 0.98, "high": value * 1.02, "p50_ms": value, "reference_ms": 1.0}
