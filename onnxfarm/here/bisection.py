"""The search behind `onnxfarm bisect`: show that bad is bad, then halve, the good release beside each probe."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.contract.reasons import CellStatus
from farm.rules.changes import watch_rounds
from farm.rules.changes.bisection import Bisection, BisectionProblem, Outcome
from farm.rules.changes.metric_steps import SoughtMetric, is_by_repeat, read_metric_step, sought_of
from farm.rules.changes.probes import Sought, Step, read_step
from farm.rules.changes.watch_rounds import Pair, Rule
from farm.rules.comparing.sides import compared
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.subsets import narrowed, with_runtimes
from farm.rules.planning.plans import Plan
from farm.rules.presenting.sentences import explanation
from farm.rules.runtimes.releases import unknown_sentence
from farm.rules.wording.numbers import change, change_interval, counted
from onnxfarm.gate import positions_of
from onnxfarm.here import published as index
from onnxfarm.here import workbench
from onnxfarm.here.published import published, refuse_uninstalled, refuse_yanked
from onnxfarm.here.workbench import Bench
from onnxfarm.problems import Infrastructure, Usage

SCHEMA = "onnxfarm.bisect/1"
# what a quick block has; enough to tell a change of a fifth from none
FEWEST_ROUNDS = 8
# of metrics that two rounds decide, as a busy machine may end a block half way
REPEATS = 4


class StepTaken(TypedDict):
    """What was measured of a release beside the good one. `outcome`: good, bad or skipped."""

    version: str
    outcome: str
    text: str
    ratio: float | None
    low: float | None
    high: float | None
    minutes: float
    explanation: str


class Turned(TypedDict):
    before: str
    after: str
    turned: str


class Answer(TypedDict):
    """The document `onnxfarm.bisect/1`. `change`: what the first bad release is worse in; `cells`: where that stands in
    what was measured of it; `ratio` to the good release with its 95 % interval."""

    schema: str
    model: str
    distribution: str
    good: str
    bad: str
    kind: str
    sentence: str
    change: str
    first_bad: str
    last_good: str
    suspects: list[str]
    is_exact: bool
    is_monotone: bool
    turns: list[Turned]
    cells: list[str]
    ratio: float | None
    low: float | None
    high: float | None
    explanation: str
    skipped: list[str]
    probes: int
    minutes: float
    versions: list[str]
    steps: list[StepTaken]


def candidates(good: Runtime, bad: Runtime) -> list[str]:
    """Published releases from good to bad, in order. Raises Usage for an unknown or yanked one, or both swapped."""
    listing = index.asked_of(good.distribution)
    versions = published(good.distribution, listing)
    for side in (good, bad):
        refuse_yanked(side, listing)
        if side.version not in versions:
            raise Usage(unknown_sentence(side) or f"{side} is not on the package index.")
    if good == bad:
        raise Usage(f"--good and --bad are both {good}: name two releases.")
    try:
        Bisection(versions, good=good.version, bad=bad.version)
    except BisectionProblem as problem:
        raise Usage(str(problem)) from problem
    return versions[versions.index(good.version) : versions.index(bad.version) + 1]


@dataclass
class Search:
    """One question. `steps`: plain values of what was measured, in order."""

    bench: Bench
    matrix: Matrix
    rule: Rule
    good: Runtime
    bad: Runtime
    versions: Sequence[str]
    # whose change is looked for, for better or worse; empty: what the rule calls bad
    metrics: Sequence[str] = ()
    steps: list[StepTaken] = field(default_factory=list)
    # what was measured of each release
    evidence: dict[str, tuple[Document, Plan]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> Answer:
        """The answer as plain values. Raises Usage when the question is wrong, Infrastructure."""
        document, positions, minutes = self._measured(self.matrix, self.bad)
        sought = self._shown_metric(document) if self.metrics else self._shown(document)
        search = Bisection(self.versions, good=self.good.version, bad=self.bad.version)
        self._note(self._read(document, sought, self.bad), document, self.bad, minutes)
        search.next_probe()
        search.record(self.bad.version, Outcome.BAD)
        _, candidate = self._cells(self.bad.version, sought)
        point = narrowed(self.matrix_of(self.bad), [positions[candidate]], runtimes=[self.good, self.bad])
        while (version := search.next_probe()) is not None:
            probe = Runtime(distribution=self.good.distribution, version=version)
            step = self._probed(point, probe, sought)
            search.record(version, step.outcome)
        return self._answer(search, sought)

    def _read(self, document: Document, sought: Sought | SoughtMetric, probe: Runtime) -> Step:
        if isinstance(sought, SoughtMetric):
            return read_metric_step(document, sought, **self._names(probe))
        return read_step(document, self.rule, sought, **self._names(probe))

    def _probed(self, point: Matrix, probe: Runtime, sought: Sought | SoughtMetric) -> Step:
        """The step of one release: the fewest rounds first, more of them where those do not tell."""
        spent = 0.0
        for most_rounds in (FEWEST_ROUNDS, workbench.MOST_ROUNDS):
            document, _, minutes = self._measured(point, probe, most_rounds=most_rounds)
            spent += minutes
            step = self._read(document, sought, probe)
            if step.outcome is not Outcome.SKIPPED or step.ratio is None:
                break
        self._note(step, document, probe, spent)
        return step

    def matrix_of(self, probe: Runtime) -> Matrix:
        """The matrix with the good release and a probed one."""
        return with_runtimes(self.matrix, [self.good, probe])

    def _measured(
        self, matrix: Matrix, probe: Runtime, *, most_rounds: int = workbench.MOST_ROUNDS
    ) -> tuple[Document, dict[str, Mapping[str, int]], float]:
        """The document, where its cells stand in the matrix, and the minutes it took."""
        began = time.monotonic()
        plan = self.bench.plan(with_runtimes(matrix, [self.good, probe]))
        positions = positions_of(plan.blocks, plan.refused)
        self.bench.console.print(
            f"step {len(self.steps) + 1}: {self.good} beside {probe.version}", highlight=False, markup=False
        )
        rounds = REPEATS if is_by_repeat(self.metrics, self.matrix.axes.get("scenario", ())) else None
        plan = workbench.reshaped(plan, lambda block: workbench.along(block, most_rounds=most_rounds, rounds=rounds))
        document = self.bench.measure(plan)
        self.evidence[probe.version] = document, plan
        return document, positions, (time.monotonic() - began) / 60.0

    def _names(self, probe: Runtime) -> dict[str, str]:
        return {"old": str(self.good), "new": str(probe)}

    def _shown_metric(self, document: Document) -> SoughtMetric:
        """The metric that changed. Raises Usage when none did, or when a side cannot be measured at all."""
        self._must_run(document, watch_rounds.pairs(document, **self._names(self.bad)))
        found = sought_of(document, self.metrics, **self._names(self.bad))
        if found is None:
            raise Usage(
                f"{self.bad.version} was given as bad, but beside {self.good.version} none of these is decided to have "
                f"changed here: {', '.join(self.metrics)}."
            )
        return found

    def _shown(self, document: Document) -> Sought:
        """What bad is worse in. Raises Usage when it is not, or when a side cannot be measured at all."""
        pairs = watch_rounds.pairs(document, **self._names(self.bad))
        self._must_run(document, pairs)
        judgement = watch_rounds.judge(document, self.rule, **self._names(self.bad))
        if judgement.findings:
            finding = watch_rounds.worst(judgement.findings)
            comparison = compared(document, finding.baseline, finding.candidate)
            size = (comparison.ratio, comparison.ci_low) if comparison is not None else (None, None)
            return Sought(finding.kind, finding.series, *size)
        if judgement.infra:
            raise Infrastructure(f"The model could not be measured: {judgement.infra[0]}")
        said = [*(one.text for one in judgement.undecided), *judgement.news]
        because = f" {said[0]}" if said else ""
        raise Usage(
            f"{self.bad.version} was given as bad, but here it is not worse than {self.good.version}, beyond what "
            f"--threshold allows.{because}"
        )

    def _must_run(self, document: Document, pairs: Sequence[Pair]) -> None:
        """Whether the good release runs the model. Raises Usage, or Infrastructure where the index may be to blame."""
        refuse_uninstalled(document)
        if any(pair.old.status is CellStatus.DONE for pair in pairs):
            return
        reasons = {str(cell.runtime): cell.reason.text for cell in document.cells if cell.reason is not None}
        why = reasons.get(str(self.good), "It was not measured.")
        if any(pair.new.status is CellStatus.DONE for pair in pairs):
            raise Usage(f"{self.good.version} was given as good, but here it does not run the model: {why}")
        raise Usage(f"Neither {self.good.version} nor {self.bad.version} runs the model: {why}")

    def _note(self, step: Step, document: Document, probe: Runtime, minutes: float) -> None:
        """Keep a step and say it."""
        comparison = next(
            (p.comparison for p in watch_rounds.pairs(document, **self._names(probe)) if p.comparison is not None), None
        )
        why = (explanation(comparison) or "") if comparison is not None and step.outcome is Outcome.BAD else ""
        plain = StepTaken(
            version=probe.version,
            outcome=step.outcome.value,
            text=step.text,
            ratio=step.ratio,
            low=step.low,
            high=step.high,
            minutes=round(minutes, 2),
            explanation=why,
        )
        self.steps.append(plain)
        size = f", {_size(plain)}" if _size(plain) else ""
        reason = f": {step.text}" if step.outcome is Outcome.SKIPPED else ""
        self.bench.console.print(
            f"  {probe.version} is {step.outcome}{size} ({minutes:.1f} min){reason}", highlight=False, markup=False
        )

    def _answer(self, search: Bisection, sought: Sought | SoughtMetric) -> Answer:
        found = search.answer()
        minutes = (time.monotonic() - self._began) / 60.0
        turn = next(step for step in self.steps if step["version"] == found.first_bad)
        what, kind = sought.words if isinstance(sought, SoughtMetric) else ("bad", sought.kind)
        sentence = found.sentence(what)
        return {
            "schema": SCHEMA,
            "model": self.bench.name,
            "distribution": self.good.distribution,
            "good": self.good.version,
            "bad": self.bad.version,
            "kind": kind,
            "sentence": f"{sentence[:1].upper()}{sentence[1:]} It took {minutes:.1f} minutes over "
            f"{counted(len(self.versions), 'version')}.",
            "change": turn["text"],
            "first_bad": found.first_bad,
            "last_good": found.last_good,
            "suspects": list(found.suspects),
            "is_exact": found.is_exact,
            "is_monotone": found.is_monotone,
            "turns": [{"before": t.before, "after": t.after, "turned": t.turned.value} for t in found.turns],
            "cells": self._cells(found.first_bad, sought),
            "ratio": turn["ratio"],
            "low": turn["low"],
            "high": turn["high"],
            "explanation": turn["explanation"],
            "skipped": [step["version"] for step in self.steps if step["outcome"] == Outcome.SKIPPED],
            "probes": found.probes,
            "minutes": round(minutes, 2),
            "versions": list(self.versions),
            "steps": self.steps,
        }

    def _cells(self, version: str, sought: Sought | SoughtMetric) -> list[str]:
        """The names of the compared cells in what was measured of a release."""
        probe = Runtime(distribution=self.good.distribution, version=version)
        pairs = watch_rounds.pairs(self.evidence[version][0], **self._names(probe))
        mine = next(pair for pair in pairs if pair.series == sought.series)
        return [mine.old.id, mine.new.id]


def _size(step: StepTaken) -> str:
    """`24 % slower than the good release (21–26 %)`, where there is a ratio."""
    if step["ratio"] is None or step["low"] is None or step["high"] is None:
        return ""
    interval = change_interval(step["low"], step["high"], ratio=step["ratio"])
    return f"{change(step['ratio'], step['low'], step['high'])} against the good release ({interval})"
