"""Watches with their rounds and long series, and alerts with their symptoms, in bulk."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import exp

from farm.alerts.models import Alert, AlertEvent, IndexLook, Point, Release, Symptom, Watch, WatchRound
from farm.alerts.states import AlertEventKind, AlertState, Cause, RoundOutcome, RoundState
from farm.fleet.models import Node
from farm.registry.models import Model, Version
from farm.rules.changes.watch_rounds import Rule
from tests.bench.seeded.machines import RELEASES, People
from tests.bench.seeded.writing import Writer

REFERENCE = "1.29.0"
ROUNDS, SERIES = 30, 4
LABEL = "{model}, CPU, fp32, batch {batch}, 1 thread"
SENTENCE = (
    "ONNX Runtime {bad} runs {model} (CPU, fp32, batch 1, 1 thread) {size:.0f} % slower than {good} on {node} "
    "(95 % interval {low:.0f}–{high:.0f} %, 8 rounds)."
)
STATES = (AlertState.OPEN, AlertState.ACKNOWLEDGED, AlertState.RESOLVED, AlertState.INVALID, AlertState.INFRA)


class Watching:
    """Writes watches over the given runs, nodes and models."""

    def __init__(
        self, writer: Writer, dice: random.Random, folk: People, *, runs: Sequence[int], nodes: Sequence[Node]
    ) -> None:
        self._writer = writer
        self._dice = dice
        self._folk = folk
        self._runs = runs
        self._nodes = nodes

    def releases(self, now: datetime) -> None:
        """What the package index offered."""
        for place, version in enumerate(RELEASES):
            seen = now - timedelta(days=30 * (len(RELEASES) - place))
            self._writer.add(Release(distribution="onnxruntime", version=version, seen_at=seen))
        self._writer.add(IndexLook(distribution="onnxruntime", looked_at=now))

    def watch(self, name: str, version: Version, *, now: datetime, rounds: int = ROUNDS, series: int = SERIES) -> Watch:
        """A watch of one model with so many rounds, each with one value of so many series."""
        row = Watch(
            team=version.model.team, name=name, created_by=self._folk.reader, reference=REFERENCE,
            matrix={"provider": ["cpu"], "batch": [1, 8], "threads": [1]}, rule_json=Rule().model_dump(mode="json"),
            seen_version=version.pk, created_at=now - timedelta(days=170),
        )  # fmt: skip
        watch = self._writer.add(row)
        self._writer.add(Watch.watched.through(watch_id=watch.pk, model_id=version.model_id))
        step, node = timedelta(days=160) / rounds, self._dice.choice(self._nodes)
        levels = [exp(self._dice.gauss(0, 0.05)) for _ in range(series)]
        for place in range(rounds):
            new = RELEASES[1 + (place * (len(RELEASES) - 1)) // rounds]
            if place and place % max(1, rounds // 5) == 0:
                levels = [level * exp(self._dice.gauss(0, 0.1)) for level in levels]
            self._round(watch, version, place, new, now - step * (rounds - place), levels, node.name)
        return watch

    def _round(
        self, watch: Watch, version: Version, place: int, new: str, at: datetime, levels: list[float], node: str
    ) -> None:
        row = WatchRound(
            watch=watch, version=version, cause=Cause.SCHEDULE, key=f"hour:{place}", old=REFERENCE, new=new,
            pinned=REFERENCE, state=RoundState.JUDGED, outcome=RoundOutcome.QUIET, compared=len(levels),
            run_id=self._dice.choice(self._runs), sentence="4 pairs compared, no changes to report.", judged_at=at,
            created_at=at,
        )  # fmt: skip
        made = self._writer.add(row)
        for number, level in enumerate(levels):
            ratio = level * exp(self._dice.gauss(0, 0.006) + (0.4 if self._dice.random() < 0.001 else 0.0))
            self._writer.add(
                Point(
                    round=made, watch=watch, series=f"{watch.pk:04d}{number:028d}", node=node, ratio=ratio,
                    label=LABEL.format(model=version.model.name, batch=2**number), runtime=f"onnxruntime=={new}",
                    low=ratio * 0.985, high=ratio * 1.015, p50_ms=ratio * 3.2, reference_ms=3.2, at=at,
                )
            )  # fmt: skip

    def alerts(self, watches: Sequence[tuple[Watch, Version]], count: int, *, now: datetime) -> None:
        """So many alerts over these watches, a twentieth of them still open."""
        models: dict[int, Model] = {}
        for place in range(count):
            watch, version = watches[place % len(watches)]
            model = models.setdefault(version.model_id, version.model)
            state = self._dice.choices(STATES, (4, 1, 70, 15, 10))[0]
            bad = self._dice.choice(RELEASES[1:])
            good = RELEASES[RELEASES.index(bad) - 1]
            # one alert for each level shift: a node stands once for a watch and release
            node = f"{self._nodes[place % len(self._nodes)].name}-{place // len(self._nodes)}"
            size = self._dice.uniform(5, 40)
            told = {"bad": bad, "good": good, "model": model.name, "node": node, "size": size}
            sentence = SENTENCE.format(**told, low=size - 2, high=size + 2)
            at = now - timedelta(minutes=100 * (count - place))
            alert = self._writer.add(
                Alert(
                    team=watch.team, watch=watch, model=model, version=version, node=node, hardware="cpu", good=good,
                    bad=bad, distribution="onnxruntime", state=state, sentence=sentence, opened_at=at, changed_at=at,
                )
            )  # fmt: skip
            self._writer.add(AlertEvent(alert=alert, kind=AlertEventKind.OPENED, text=sentence, at=at))
            for number in range(self._dice.randint(1, 3)):
                self._symptom(alert, number, size, at)

    def _symptom(self, alert: Alert, number: int, size: float, at: datetime) -> None:
        ratio = 1 + size / 100
        comparison = {
            "baseline": "c1", "candidate": "c2", "axis": "runtime", "ratio": ratio, "ci_low": ratio - 0.02,
            "ci_high": ratio + 0.02, "ci_level": 0.95, "p": 1e-6, "verdict": "slower", "rounds": 8, "margin": 0.02,
        }  # fmt: skip
        self._writer.add(
            Symptom(
                alert=alert, node=alert.node, series=f"{alert.watch_id:04d}{number:028d}", kind="slower",
                text=alert.sentence, size=ratio,
                label=LABEL.format(model=alert.model.name, batch=2**number), run_id=self._dice.choice(self._runs),
                baseline="c1", cell="c2", comparison=comparison, at=at,
                explanation="LayerNormalization: 2 nodes, 81 → 310 µs, explains 96 % of the change",
            )
        )  # fmt: skip
