"""Work-arounds: session options measured in one block with the good and the bad release."""

import functools
import logging
import mmap
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from django.db import transaction

from farm.alerts.models import Investigation
from farm.alerts.services import measurements
from farm.alerts.services.bisections import minutes_of
from farm.alerts.services.measurements import Answer, CannotMeasure
from farm.alerts.states import InvestigationState
from farm.contract import document_comparisons as doc_comparisons
from farm.rules.changes import switches
from farm.rules.changes.switches import MOST_STEPS, Candidate, PlainCandidate, Trial
from farm.rules.matrices.points import Point
from farm.rules.matrices.subsets import point_at
from farm.rules.planning import blocks, estimates
from farm.rules.wording.numbers import counted
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.states import RunReason

log = logging.getLogger(__name__)

# both releases and an A/A twin stand beside the candidates
OTHER_ARMS = 3
MOST_WORDS = 12


class KeptTrial(TypedDict):
    """A trial as it is stored."""

    candidate: PlainCandidate
    undone: float
    remaining: float
    keeps_parity: bool
    comparison: dict[str, object]


class Step(TypedDict, total=False):
    """A step of an investigation, as far as it tried anything."""

    trials: list[KeptTrial]


def next_run(one: Investigation) -> Answer | None:
    """Orders the next candidates; or, when the search is over, gives the answer. Raises CannotMeasure."""
    run = one.symptom.run
    if run is None:
        raise CannotMeasure("The run that showed the change was deleted, so it cannot be measured again.")
    matrix = measurements.parsed(run)
    point = _point(run, one.symptom.cell)
    candidates = _next(one, point, most=_room(one, run))
    if not candidates or len(one.steps) >= MOST_STEPS:
        return _answer(one)
    watch = one.alert.watch
    old, new = watch.runtime(one.alert.good), watch.runtime(one.alert.bad)
    trial = switches.trial_matrix(matrix, point, old=old, new=new, candidates=candidates)
    trial = replace(trial, axes={**trial.axes, "hardware": (f"node:{one.symptom.node}",)})
    asked = {**(one.asked or {}), "candidates": [candidate.as_plain() for candidate in candidates]}
    with transaction.atomic():
        started = measurements.start(watch, one.alert.version, trial, reason=RunReason.WORK_AROUND)
        state = InvestigationState.MEASURING
        if not one.move(state, was=InvestigationState.WAITING, run=started, asked=asked):
            transaction.set_rollback(True)
    return None


def read_trials(one: Investigation) -> dict[str, object]:
    """A step: what each candidate gave back."""
    candidates = [Candidate.of_plain(plain) for plain in (one.asked or {}).get("candidates", [])]
    tried = [candidate.as_plain() for candidate in candidates]
    if one.run is None:
        return {"tried": tried, "trials": [], "minutes": 0.0}
    watch = one.alert.watch
    old, new = str(watch.runtime(one.alert.good)), str(watch.runtime(one.alert.bad))
    found = switches.read_trials(runs.document(one.run), candidates, old=old, new=new)
    return {
        "tried": tried,
        "run": one.run.pk,
        "minutes": minutes_of(one.run),
        "trials": [_plain(trial) for trial in found],
    }


@functools.cache
def library_names() -> tuple[str, ...]:
    """Names read off the ONNX Runtime that is installed beside the farm; none where there is no such library."""
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ()
    found = sorted((Path(spec.origin).parent / "capi").glob("onnxruntime_pybind11_state*"))
    for path in found:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            names = switches.optimizer_names(library)
        log.info("%s holds %s names of optimizers", path.name, len(names))
        return tuple(names)
    return ()


def _point(run: Run, cell: str) -> Point:
    positions = measurements.positions_of(run, [cell])
    try:
        return point_at(measurements.parsed(run), positions[0])
    except LookupError:
        raise CannotMeasure(f"The run {run.pk} has no cell {cell} any more.") from None


def _room(one: Investigation, run: Run) -> int:
    """How many candidates fit one block with what they are compared with."""
    cell = runs.cell_document(run, one.symptom.cell)
    plan = measurements.parsed(run)
    arm_s = estimates.arm_seconds(plan.budget, cell.p50_ms)
    return max(1, min(switches.MOST_CANDIDATES, blocks.capacity_for(arm_s, most=16) - OTHER_ARMS))


def _next(one: Investigation, point: Point, *, most: int) -> list[Candidate]:
    if one.steps:
        trials = _trials(one)
        return switches.next_candidates(trials, most=most) or switches.last_candidates(
            point, trials, done=_labels(one), most=most
        )
    given = list((one.asked or {}).get("given", []))
    ranked = switches.ranked(library_names(), words=_words(one))
    names = list(dict.fromkeys([*given, *ranked]))
    return switches.first_candidates(names, level=str(point.values.get("optimization", "all")), most=most)


def _words(one: Investigation) -> list[str]:
    """Operator types that changed most, by which names are ranked."""
    if one.symptom.comparison is None:
        return []
    operators = doc_comparisons.Comparison.model_validate(one.symptom.comparison).operators
    changed = sorted(operators, key=lambda change: -abs(change.candidate_us - change.baseline_us))
    return list(dict.fromkeys(change.op_type for change in changed))[:MOST_WORDS]


def _labels(one: Investigation) -> set[str]:
    """What was tried so far, whether or not it could be measured."""
    return {plain["label"] for step in one.steps for plain in step["tried"]}


def _trials(one: Investigation) -> list[Trial]:
    return [trial for step in one.steps for trial in trials_of(step)]


def trials_of(step: Step) -> list[Trial]:
    """What a step of an investigation tried."""
    return [
        Trial(
            candidate=Candidate.of_plain(plain["candidate"]),
            undone=plain["undone"],
            remaining=plain["remaining"],
            keeps_parity=plain["keeps_parity"],
            comparison=doc_comparisons.Comparison.model_validate(plain["comparison"]),
        )
        for plain in step.get("trials", ())
    ]


def _plain(trial: Trial) -> KeptTrial:
    comparison = trial.comparison.model_dump(mode="json", exclude={"operators"})
    return {
        "candidate": trial.candidate.as_plain(),
        "undone": trial.undone,
        "remaining": trial.remaining,
        "keeps_parity": trial.keeps_parity,
        "comparison": comparison,
    }


def _answer(one: Investigation) -> Answer:
    trials = _trials(one)
    best = switches.best_of(trials)
    minutes = sum(step["minutes"] for step in one.steps)
    tried = sum(len(step["tried"]) for step in one.steps)
    if best is None:
        text = f"None of {counted(tried, 'set')} of session options recovers as much as "
        text += f"{100 * switches.WORTHWHILE:.0f} % of the change."
        return Answer(text, {"is_found": False, "tried": tried, "minutes": minutes})
    plain = {
        "is_found": True,
        "tried": tried,
        "minutes": minutes,
        "code": switches.code_for(best),
        **_plain(best),
    }
    return Answer(switches.sentence(best), plain)
