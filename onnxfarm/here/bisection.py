"""Finds the first bad release on this machine. Each step measures one release side by side with the good one."""

import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from farm.contract.blocks import ArmOrder
from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.changes import report
from farm.rules.changes.report import Case
from farm.rules.changes.watch_rounds import Rule
from farm.rules.comparing.sides import find_comparison
from farm.rules.findings import cell_pairs
from farm.rules.findings.cell_pairs import Pair
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import replace_runtimes
from farm.rules.planning.plans import Plan
from farm.rules.presenting import sentences
from farm.rules.presenting.explanations import explain_change
from farm.rules.runtimes.order import release_order
from farm.rules.searches import targets
from farm.rules.searches.bisection import Bisection, Outcome
from farm.rules.searches.search import Experiment, Measured, Search, SearchProblem, carry_out
from farm.rules.searches.since_when import SinceWhen
from farm.rules.searches.targets import Step, Target
from farm.rules.wording.numbers import change, change_interval, counted
from onnxfarm.here import release_index as index
from onnxfarm.here import workbench
from onnxfarm.here.release_index import check_installable
from onnxfarm.here.workbench import Bench, Workbench
from onnxfarm.problems import Infrastructure, Usage

SCHEMA = "onnxfarm.bisect/1"
# the rounds of a quick block, which detect a change of 20 %
MIN_ROUNDS = 8
# the rounds for metrics that two rounds decide, with a reserve because a busy machine may end a block early
REPEATED_ROUNDS = 4


class ReportedStep(Step):
    """A step of the search, with the explanation of its change, such as the operator that became slower."""

    explanation: str


def list_candidates(good: Runtime, bad: Runtime, *, home: Path, with_prereleases: bool = False) -> list[str]:
    """List the published versions from good to bad, both included, in the order of releases.

    Yanked versions are left out. Pre-releases are left out unless `with_prereleases`, except for good and bad. Raises
    Usage if one of the two is unknown or yanked, or if they are equal or in the wrong order, and Infrastructure.
    """
    unknown = {side.version for side in index.find_unknown_runtimes((good, bad), home=home)}
    listed = index.list_releases(good.distribution, home=home, with_prereleases=with_prereleases)
    versions = sorted({*listed, *unknown}, key=release_order)
    for side in (good, bad):
        if side.version not in versions:
            raise Usage(f"{side} is not on the package index.")
    if good == bad:
        raise Usage(f"--good and --bad are both {good}: name two releases.")
    try:
        Bisection(versions, good=good.version, bad=bad.version)
    except SearchProblem as problem:
        raise Usage(str(problem)) from problem
    return versions[versions.index(good.version) : versions.index(bad.version) + 1]


class Evidence(NamedTuple):
    """What was measured of a version: the bench document, and the plan that it was measured by."""

    document: Document
    plan: Plan


@dataclass
class LocalBisection:
    """A bisection between two releases, measured on this machine.

    `versions`: the candidates in the order of releases. `metrics`: search for a change of these metrics, for better or
    worse; empty: search for what `rule` calls bad. `evidence`: the last measurement of each version beside the good
    one, which has none itself.
    """

    bench: Bench
    matrix: Matrix
    rule: Rule
    good: Runtime
    bad: Runtime
    versions: Sequence[str]
    metrics: Sequence[str] = ()
    evidence: dict[str, Evidence] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Search for the first bad release, and return the document `onnxfarm.bisect/1` as plain values.

        Its `change` says what became worse, and `cells` are the ids of the two cells in `evidence` that show it. Each
        step is printed. Raises Usage if bad is not worse than good, or if the index has no file of one of them for this
        machine, Infrastructure, and Stopped.
        """
        began = time.monotonic()

        # measure both ends, and find out in what bad is worse
        both_sides = replace_runtimes(self.matrix, [self.good, self.bad])
        measured = self._measure(
            Experiment(both_sides, f"{self.good} beside {self.bad.version}", asked={"probe": self.bad.version})
        )
        document = measured.document
        target = self._find_target(document)
        point = measured.narrow_to([self._pair(target, self.bad.version).new.id], runtimes=[self.good, self.bad])

        # halve the versions between them
        scope = f" over {counted(len(self.versions), 'version')}"
        search = SinceWhen(lambda: point, self.versions, self.good, self.bad, target, suffix=scope)
        search.record(self._report_step(target.judge_probe(document, good=self.good, probe=self.bad), began=began))
        since = carry_out(search, self)

        steps = cast(list[ReportedStep], search.steps)
        first_bad_step = next(step for step in steps if step["version"] == since.plain["first_bad"])
        pair = self._pair(target, first_bad_step["version"])
        return {
            "schema": SCHEMA,
            "model": self.bench.name,
            "distribution": self.good.distribution,
            "good": self.good.version,
            "bad": self.bad.version,
            "kind": target.name,
            "sentence": since.sentence,
            "change": first_bad_step["text"],
            **since.plain,
            "cells": [pair.old.id, pair.new.id],
            "explanation": first_bad_step["explanation"],
            "minutes": round((time.monotonic() - began) / 60.0, 2),
            "versions": list(self.versions),
            "steps": steps,
        }

    def measure(self, experiment: Experiment, search: Search[Step, Any]) -> Step:
        """Measure a step in at most MIN_ROUNDS rounds, and if it is undecided, again in at most MAX_ROUNDS.

        A block's own maximum counts if it is higher. For metrics that repeats decide, it is REPEATED_ROUNDS both times.
        Print the step, store its last measurement in `evidence`, and return it. Raises Usage, Infrastructure and
        Stopped.
        """
        began = time.monotonic()
        for max_rounds in (MIN_ROUNDS, workbench.MAX_ROUNDS):
            measured = self._measure(experiment, max_rounds=max_rounds)
            step = search.read(experiment.asked, measured)
            if not search.is_undecided(step):
                break
        return self._report_step(step, began=began)

    def _measure(self, experiment: Experiment, *, max_rounds: int = workbench.MAX_ROUNDS) -> Measured:
        version = str(experiment.asked["probe"])
        number = len(self.evidence.keys() | {version})
        self.bench.console.print(f"step {number}: {experiment.title}", highlight=False, markup=False)
        scenarios = self.matrix.axes.get("scenario", ())
        rounds = REPEATED_ROUNDS if targets.are_decided_by_repeats(self.metrics, scenarios) else None
        measured, plan = workbench.measure_for_search(
            self.bench, experiment.matrix, partial(workbench.select_comparisons, max_rounds=max_rounds, rounds=rounds)
        )
        self.evidence[version] = Evidence(measured.document, plan)
        return measured

    def _find_target(self, document: Document) -> Target:
        """Find the kind of change, or the metric, in which bad is worse than good. Raises Usage, Infrastructure."""
        check_installable(document)
        sides = {"good": self.good, "bad": self.bad}
        try:
            targets.check_good_release(document, **sides)
            if self.metrics:
                return targets.find_largest_change(document, self.metrics, **sides)
            return targets.find_worst_change(document, self.rule, **sides)
        except SearchProblem as problem:
            raise (Infrastructure if problem.is_infra else Usage)(str(problem)) from problem

    def _report_step(self, step: Step, *, began: float) -> ReportedStep:
        """Print a step, and return it with the minutes since `began` and its explanation."""
        minutes = (time.monotonic() - began) / 60.0
        compared = next((pair.comparison for pair in self._pairs(step["version"]) if pair.comparison is not None), None)
        is_bad = step["outcome"] == Outcome.BAD
        cause = (explain_change(compared) or "") if compared is not None and is_bad else ""
        line = ", ".join(filter(None, (f"  {step['version']} is {step['outcome']}", _format_size(step))))
        reason = f": {step['text']}" if step["outcome"] == Outcome.SKIPPED else ""
        self.bench.console.print(f"{line} ({minutes:.1f} min){reason}", highlight=False, markup=False)
        return ReportedStep(**step, minutes=round(minutes, 2), explanation=cause)

    def _pairs(self, version: str) -> list[Pair]:
        probe = Runtime(distribution=self.good.distribution, version=version)
        return cell_pairs.pair_cells(self.evidence[version].document, old=self.good, new=probe)

    def _pair(self, target: Target, version: str) -> Pair:
        return next(pair for pair in self._pairs(version) if pair.series == target.series)


def _format_size(step: Step) -> str:
    """Format `24 % slower against the good release (21–26 %)`; empty without a ratio."""
    if step["ratio"] is None or step["low"] is None or step["high"] is None:
        return ""
    interval = change_interval(step["low"], step["high"], ratio=step["ratio"])
    return f"{change(step['ratio'], step['low'], step['high'])} against the good release ({interval})"


def write_report(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], path: Path, since: str = ""
) -> None:
    """Write a zip that reproduces the change between two cells of a document.

    `sides`: the ids of the baseline cell and the candidate cell. The model and inputs are the candidate's; the
    baseline's if the candidate was not planned. `since`: a sentence about the first bad release, for the report; may be
    empty. Raises Usage if the file cannot be written, Infrastructure if that cell cannot be prepared, and KeyError if
    one of them is not in the document.
    """
    case, order = _make_case(bench, plan, document, sides=sides, since=since)
    files = bench.measurer.files.paths
    try:
        with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
            for name, text in report.render_files(case).items():
                archive.writestr(name, text)
            for file in order.bundle.files:
                archive.write(files[file.sha256], f"{report.MODEL_FOLDER}/{file.name}")
            archive.write(files[order.inputs.sha256], report.INPUTS)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a .zip.") from problem


def _make_case(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], since: str
) -> tuple[Case, ArmOrder]:
    cells = {cell.id: cell for cell in document.cells}
    for block in plan.blocks:
        numbers = {arm.id: arm.arm for arm in block.arms}
        arm_number = numbers.get(sides[1], numbers.get(sides[0]))
        order, _ = bench.measurer.preparation.make_order(block, seed=bench.measurer.seed)
        arms = [arm for arm in order.arms if arm.arm == arm_number] if order is not None else []
        if arms:
            old, new = (cells[name] for name in sides)
            sentence = ""
            if (comparison := find_comparison(document, *sides)) is not None:
                sentence = sentences.comparison_sentence(comparison, cells).partition(": ")[2]
            sentence = sentence or sentences.cell_sentence(new)
            case = Case(document, old, new, arms[0].cell, arms[0].bundle.main, sentence, since)
            return case, arms[0]
    raise Infrastructure(f"Neither {sides[0]} nor {sides[1]} was measured, so that there is nothing to report.")
