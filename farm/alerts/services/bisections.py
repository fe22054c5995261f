"""Since when: each step measures the good release and one probed release side by side, and reads what the rule says."""

from typing import cast

from django.db import transaction

from farm.alerts.models import Investigation
from farm.alerts.selectors.releases import between
from farm.alerts.services import measurements
from farm.alerts.services.measurements import Answer, CannotMeasure
from farm.alerts.states import InvestigationState
from farm.base.refusals import Refusal
from farm.rules.changes.bisection import Bisection, BisectionProblem, Outcome
from farm.rules.changes.probes import Sought, read_step
from farm.rules.comparing.power import LOOKS
from farm.rules.findings.kinds import Key
from farm.rules.matrices.subsets import narrowed
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.services import more_rounds
from farm.runs.states import RunReason, RunState

INTERRUPTED = "The run was deleted before its results were read."


def next_run(one: Investigation) -> Answer | None:
    """Orders the next probe; or, when there is none, gives the answer.

    Raises BisectionProblem when the question itself is wrong, CannotMeasure.
    """
    good, bad = bounds(one)
    search = _replayed(one, good=good, bad=bad)
    probe = search.next_probe()
    if probe is None:
        return _answer(one, search)
    run = one.symptom.run
    if run is None:
        raise CannotMeasure("The run that showed the change was deleted, so it cannot be measured again.")
    alert = one.alert
    runtimes = [alert.watch.runtime(good), alert.watch.runtime(probe)]
    positions = measurements.positions_of(run, [one.symptom.cell])
    matrix = narrowed(measurements.parsed(run), positions, runtimes=runtimes, hardware=[f"node:{one.symptom.node}"])
    asked = {**(one.asked or {}), "probe": probe}
    with transaction.atomic():
        started = measurements.start(alert.watch, alert.version, matrix, reason=RunReason.BISECTION)
        state = InvestigationState.MEASURING
        if not one.move(state, was=InvestigationState.WAITING, run=started, asked=asked):
            transaction.set_rollback(True)
    return None


def read_probe(one: Investigation) -> dict[str, object] | None:
    """A step: what the finished run says of the probed release. None: it does not tell yet, and goes on."""
    version = str((one.asked or {})["probe"])
    if one.run is None:
        return {"version": version, "outcome": Outcome.SKIPPED, "text": INTERRUPTED, "minutes": 0.0}
    watch, symptom = one.alert.watch, one.symptom
    good, _ = bounds(one)
    sought = Sought(cast(Key, symptom.kind), symptom.series, symptom.size)
    names = {"old": str(watch.runtime(good)), "new": str(watch.runtime(version))}
    step = read_step(runs.document(one.run), watch.rule, sought, **names)
    if step.outcome == Outcome.SKIPPED and step.ratio is not None and _goes_on(one, one.run):
        return None
    return {"version": version, "run": one.run.pk, "minutes": minutes_of(one.run), **step.as_plain()}


def _goes_on(one: Investigation, run: Run) -> bool:
    """Lets what is undecided be measured up to the last look; False when it was, or when nothing of it can go on."""
    by = measurements.runner_of(one.alert.watch)
    measured = max(run.blocks.values_list("rounds", flat=True), default=LOOKS[-1])
    if by is None or measured >= LOOKS[-1]:
        return False
    try:
        more_rounds(run=run, by=by, rounds=LOOKS[-1] - measured)
    except Refusal:
        # another tick may have asked first
        run.refresh_from_db()
        return run.state != RunState.FINISHED
    return True


def bounds(one: Investigation) -> tuple[str, str]:
    """The good and the bad release of the question."""
    asked = one.asked or {}
    return str(asked.get("good") or one.alert.good), str(asked.get("bad") or one.alert.bad)


def minutes_of(run: Run) -> float:
    """How long a run took from its start to its end."""
    if run.started_at is None or run.finished_at is None:
        return 0.0
    return (run.finished_at - run.started_at).total_seconds() / 60.0


def _replayed(one: Investigation, *, good: str, bad: str) -> Bisection:
    """The search as it stands after the steps so far. The alert's own evidence is the first of them."""
    versions = between(one.alert.distribution, good=good, bad=bad)
    search = Bisection(versions, good=good, bad=bad)
    if (good, bad) == (one.alert.good, one.alert.bad):
        search.next_probe()
        search.record(bad, Outcome.BAD)
    for step in one.steps:
        probe = search.next_probe()
        if probe != step["version"]:
            raise BisectionProblem(
                f"New releases of {one.alert.distribution} were published in the meantime; start the bisection again."
            )
        search.record(step["version"], Outcome(step["outcome"]))
    return search


def _answer(one: Investigation, search: Bisection) -> Answer:
    found = search.answer()
    minutes = sum(step.get("minutes", 0.0) for step in one.steps)
    turn = next((step for step in one.steps if step["version"] == found.first_bad), None)
    ratio = turn or {"ratio": one.symptom.size}
    skipped = [step["version"] for step in one.steps if step["outcome"] == Outcome.SKIPPED]
    spent = f" It took {minutes:.1f} minutes." if one.steps else ""
    plain = {
        "first_bad": found.first_bad,
        "last_good": found.last_good,
        "suspects": list(found.suspects),
        "is_exact": found.is_exact,
        "is_monotone": found.is_monotone,
        "turns": [{"before": t.before, "after": t.after, "turned": t.turned.value} for t in found.turns],
        "probes": found.probes,
        "skipped": skipped,
        "minutes": minutes,
        "ratio": ratio.get("ratio"),
        "low": ratio.get("low"),
        "high": ratio.get("high"),
    }
    sentence = f"{found.sentence()[:1].upper()}{found.sentence()[1:]}{spent}"
    return Answer(sentence, plain, first_bad=found.first_bad if found.is_exact else "")
