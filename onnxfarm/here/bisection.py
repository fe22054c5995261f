"""The search behind `onnxfarm bisect`: show that bad is bad, then halve, the good release beside each probe."""

import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

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
from farm.rules.presenting.sentences import explanation
from farm.rules.runtimes.order import release_order
from farm.rules.searches import sought
from farm.rules.searches.bisection import Bisection, Outcome
from farm.rules.searches.search import Experiment, Measured, Search, SearchProblem, carry_out
from farm.rules.searches.since_when import SinceWhen
from farm.rules.searches.sought import Sought, Step
from farm.rules.wording.numbers import change, change_interval, counted
from onnxfarm.here import release_index as index
from onnxfarm.here import workbench
from onnxfarm.here.release_index import check_installable
from onnxfarm.here.workbench import Bench, Workbench
from onnxfarm.problems import Infrastructure, Usage

SCHEMA = "onnxfarm.bisect/1"
# what a quick block has; enough to tell a change of a fifth from none
MIN_ROUNDS = 8
# of metrics that two rounds decide, as a busy machine may end a block half way
REPEATS = 4


class StepTaken(Step):
    """What was measured of a release beside the good one."""

    explanation: str


def list_candidates(good: Runtime, bad: Runtime, *, home: Path, with_prereleases: bool = False) -> list[str]:
    """List the published versions from good to bad, in order.

    Release candidates and development builds are listed only `with_prereleases`, but for the two themselves. Raises
    Usage where one of the two is unknown or yanked, or where both are swapped.
    """
    early = {side.version for side in index.find_unknown_runtimes((good, bad), home=home)}
    known = index.list_releases(good.distribution, home=home, with_prereleases=with_prereleases)
    versions = sorted({*known, *early}, key=release_order)
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


@dataclass
class Question:
    """What is asked, and this machine as the bench that answers it. `evidence`: what was measured, by version."""

    bench: Bench
    matrix: Matrix
    rule: Rule
    good: Runtime
    bad: Runtime
    versions: Sequence[str]
    # whose change is looked for, for better or worse; empty: what the rule calls bad
    metrics: Sequence[str] = ()
    evidence: dict[str, tuple[Document, Plan]] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Search for the first bad release, and return the document `onnxfarm.bisect/1`.

        `change`: what the first bad release is worse in; `cells`: where that stands in what was measured of it; `ratio`
        to the good release with its 95 % interval. Raises Usage when bad is not worse than good, and Infrastructure.
        """
        began = time.monotonic()
        whole = replace_runtimes(self.matrix, [self.good, self.bad])
        measured = self._measure(
            Experiment(whole, f"{self.good} beside {self.bad.version}", asked={"probe": self.bad.version})
        )
        document = measured.document
        wanted = self._find_sought(document)
        point = measured.narrow_to([self._pair(wanted, self.bad.version).new.id], runtimes=[self.good, self.bad])
        over = f" over {counted(len(self.versions), 'version')}"
        search = SinceWhen(lambda: point, self.versions, self.good, self.bad, wanted, over=over)
        search.record(self._note(wanted.judge_probe(document, good=self.good, probe=self.bad), began=began))
        found = carry_out(search, self)
        steps = cast(list[StepTaken], search.steps)
        turn = next(step for step in steps if step["version"] == found.plain["first_bad"])
        pair = self._pair(wanted, turn["version"])
        return {
            "schema": SCHEMA,
            "model": self.bench.name,
            "distribution": self.good.distribution,
            "good": self.good.version,
            "bad": self.bad.version,
            "kind": wanted.words[1],
            "sentence": found.sentence,
            "change": turn["text"],
            **found.plain,
            "cells": [pair.old.id, pair.new.id],
            "explanation": turn["explanation"],
            "minutes": round((time.monotonic() - began) / 60.0, 2),
            "versions": list(self.versions),
            "steps": steps,
        }

    def measure(self, experiment: Experiment, search: Search[Step, Any]) -> Step:
        """Measure a step in MIN_ROUNDS, and once more in more rounds where those leave it undecided."""
        began = time.monotonic()
        for max_rounds in (MIN_ROUNDS, workbench.MAX_ROUNDS):
            measured = self._measure(experiment, max_rounds=max_rounds)
            step = search.read(experiment.asked, measured)
            if not search.is_undecided(step):
                break
        return self._note(step, began=began)

    def _measure(self, experiment: Experiment, *, max_rounds: int = workbench.MAX_ROUNDS) -> Measured:
        version = str(experiment.asked["probe"])
        number = len(self.evidence.keys() | {version})
        self.bench.console.print(f"step {number}: {experiment.title}", highlight=False, markup=False)
        rounds = REPEATS if sought.are_decided_by_repeats(self.metrics, self.matrix.axes.get("scenario", ())) else None
        found, plan = workbench.measure_for_search(
            self.bench, experiment.matrix, partial(workbench.select_comparisons, max_rounds=max_rounds, rounds=rounds)
        )
        self.evidence[version] = found.document, plan
        return found

    def _find_sought(self, document: Document) -> Sought:
        """Find what bad is worse in, or which metric changed. Raises Usage, or Infrastructure."""
        check_installable(document)
        sides = {"good": self.good, "bad": self.bad}
        try:
            sought.check_good_release(document, **sides)
            if self.metrics:
                return sought.find_sought_metric(document, self.metrics, **sides)
            return sought.find_sought_kind(document, self.rule, **sides)
        except SearchProblem as problem:
            raise (Infrastructure if problem.is_infra else Usage)(str(problem)) from problem

    def _note(self, step: Step, *, began: float) -> StepTaken:
        """Print the step, and return it with its minutes and its explanation."""
        minutes = (time.monotonic() - began) / 60.0
        compared = next((pair.comparison for pair in self._pairs(step["version"]) if pair.comparison is not None), None)
        is_bad = step["outcome"] == Outcome.BAD
        why = (explanation(compared) or "") if compared is not None and is_bad else ""
        size = f", {_size(step)}" if _size(step) else ""
        reason = f": {step['text']}" if step["outcome"] == Outcome.SKIPPED else ""
        self.bench.console.print(
            f"  {step['version']} is {step['outcome']}{size} ({minutes:.1f} min){reason}", highlight=False, markup=False
        )
        return StepTaken(**step, minutes=round(minutes, 2), explanation=why)

    def _pairs(self, version: str) -> list[Pair]:
        probe = Runtime(distribution=self.good.distribution, version=version)
        return cell_pairs.pair_cells(self.evidence[version][0], old=self.good, new=probe)

    def _pair(self, wanted: Sought, version: str) -> Pair:
        return next(pair for pair in self._pairs(version) if pair.series == wanted.series)


def _size(step: Step) -> str:
    """Format `24 % slower than the good release (21–26 %)`, where there is a ratio."""
    if step["ratio"] is None or step["low"] is None or step["high"] is None:
        return ""
    interval = change_interval(step["low"], step["high"], ratio=step["ratio"])
    return f"{change(step['ratio'], step['low'], step['high'])} against the good release ({interval})"


def write_report(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], path: Path, since: str = ""
) -> None:
    """Write a zip that reproduces a change between two cells of a document, `sides` being (baseline, candidate).

    Raises Usage where the file cannot be written, and Infrastructure where neither cell was measured.
    """
    case, order = _case(bench, plan, document, sides=sides, since=since)
    files = bench.template.files.paths
    try:
        with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
            for name, text in report.render_files(case).items():
                archive.writestr(name, text)
            for file in order.bundle.files:
                archive.write(files[file.sha256], f"{report.MODEL_FOLDER}/{file.name}")
            archive.write(files[order.inputs.sha256], report.INPUTS)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a .zip.") from problem


def _case(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], since: str
) -> tuple[Case, ArmOrder]:
    cells = {cell.id: cell for cell in document.cells}
    for block in plan.blocks:
        numbers = {arm.id: arm.arm for arm in block.arms}
        wanted = numbers.get(sides[1], numbers.get(sides[0]))
        order, _ = bench.template.preparation.make_order(block, seed=bench.template.seed)
        mine = [arm for arm in order.arms if arm.arm == wanted] if order is not None else []
        if mine:
            old, new = (cells[name] for name in sides)
            found = find_comparison(document, *sides)
            sentence = sentences.comparison_sentence(found, cells).partition(": ")[2] if found is not None else ""
            sentence = sentence or sentences.cell_sentence(new)
            case = Case(document, old, new, mine[0].cell, mine[0].bundle.main, sentence, since)
            return case, mine[0]
    raise Infrastructure(f"Neither {sides[0]} nor {sides[1]} was measured, so that there is nothing to report.")
