"""Searches for the settings to ship, on the farm's nodes: a race for each kind of hardware, a run for each block.

Each tick rebuilds a race from its row and from what its runs measured; nothing else is kept between ticks. A run that
measured nothing because its node was lost is measured again.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Find
from farm.alerts.selectors.finds import list_races
from farm.alerts.selectors.releases import list_known_releases
from farm.alerts.services.measurements import PASSING
from farm.alerts.states import OPEN_FINDS, FindState
from farm.base.refusals import Invalid, NotAllowed, Refusal
from farm.contract.document import Document
from farm.contract.document_find import GOALS, MAX_MINUTES, Goal, LeftSetting
from farm.contract.reasons import CellStatus, ReasonCode
from farm.fleet.selectors import node_offers
from farm.registry.models import EvaluationData, Version
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix import Matrix, parse
from farm.rules.matrices.points import expand
from farm.rules.matrices.spaces import BATCHES, default_space
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.releases import Known
from farm.rules.searches import contenders, race_document
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Race
from farm.rules.searches.search import Experiment, Measured, SearchProblem
from farm.rules.searches.standings import Standing
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.selectors.minutes import minutes_of_run
from farm.runs.services import cancel_run, plan_run, settle, start_run
from farm.runs.states import BlockState, RunOutcome, RunReason, RunState

MAX_KINDS = 16
# for a block whose node is lost each time before it measured anything
MAX_TRIES = 3
# how long the short rounds of a race serve later ones, which are judged alike
MAX_AGE = timedelta(days=1)
JUDGES = ("has_labels", "has_tolerance")
# reasons of cells after which a block is measured again
PASSING_CODES = (ReasonCode.NODE_LOST, ReasonCode.INTERNAL)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """What is looked for. `minutes`: of machine time for each race. `space`: a matrix whose points compete; for None it
    is the usual space of `providers`, with the axes and settings of `beside`. `hardware`: tags or `node:NAME`, with a
    race for each; empty for a single race on any hardware."""

    goal: Goal = "latency"
    limits: Limits = field(default_factory=Limits)
    minutes: float = 10.0
    space: Mapping[str, object] | None = None
    providers: Sequence[str] = ("cpu",)
    beside: Mapping[str, object] = field(default_factory=dict)
    hardware: Sequence[str] = ()


def start_find(*, version: Version, by: User, question: Question) -> Find:
    """Start a search: write a row for each race, which the tick then measures, and return the first.

    Raises NotAllowed without the right to run in the model's team, Invalid for a wrong question or where fewer than two
    settings of the space run on some hardware, and what planning raises.
    """
    team = version.model.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view the models of team “{team.name}” but not start runs of them.")
    _check(question)
    known = list_known_releases()
    planned = [(hardware, _plan_race(version, hardware, question, known)) for hardware in question.hardware or ("",)]
    races: list[Find] = []
    with transaction.atomic():
        for hardware, plain in planned:
            first = races[0] if races else None
            race = Find.objects.create(version=version, asked_by=by, first=first, hardware=hardware, question=plain)
            races.append(race)
    return races[0]


def _check(question: Question) -> None:
    if question.goal not in GOALS:
        raise Invalid(choice_sentence("goal", question.goal, GOALS), code="goal")
    if not 0 < question.minutes <= MAX_MINUTES:
        raise Invalid(f"{question.minutes:g} minutes: give some above 0, and {MAX_MINUTES:g} at most.", code="minutes")
    if len(set(question.hardware)) != len(question.hardware) or len(question.hardware) > MAX_KINDS:
        raise Invalid(f"Name up to {MAX_KINDS} kinds of hardware, each once.", code="hardware")


def _plan_race(version: Version, hardware: str, question: Question, known: Known) -> dict[str, object]:
    """Return the question of one race, as its row keeps it. Raises Invalid."""
    space = _make_space(version, hardware, question)
    plan = plan_run(version=version, matrix=space, known=known, with_null_pair=False)
    racing, refused = contenders.split_contenders(plan, space, question.goal)
    if why := contenders.explain_no_race(racing, refused):
        raise Invalid(f"{hardware}: {why}" if hardware else why, code="space")
    row = EvaluationData.objects.filter(version=version).first()
    limits = replace(question.limits, has_labels=row is not None and row.order is not None)
    if limits.min_accuracy is not None and not limits.has_labels:
        raise Invalid("An accuracy is judged on labelled data: add some to the version first.", code="no_labels")
    return {
        "goal": question.goal,
        "limits": asdict(replace(limits, has_tolerance=bool(space.tolerances))),
        "minutes": question.minutes,
        "matrix": replace(space, axes={}, exclude=(), include=tuple(each.values for each in racing)).as_plain(),
        "racing": [{"digest": each.digest, "label": each.label} for each in racing],
        "refused": [left.model_dump(mode="json") for left in refused],
        "room": max(len(block.arms) for block in plan.blocks),
    }


def _make_space(version: Version, hardware: str, question: Question) -> Matrix:
    """Make the space of a race, whose points all name its hardware. Raises Invalid."""
    try:
        if question.space is None:
            batch = {"batch": BATCHES} if question.goal == "throughput" else {}
            plain = batch | dict(question.beside)
            beside = parse(plain, allowed=settings.ALLOWED_PACKAGES) if plain else None
            space = default_space(question.providers, cores=_count_cores(version, hardware), beside=beside)
        else:
            space = parse(question.space, allowed=settings.ALLOWED_PACKAGES)
    except MatrixProblem as problem:
        raise Invalid(str(problem), code="matrix") from problem
    if space.models:
        raise Invalid("Settings of one version race: leave `models` out of the space.", code="matrix")
    place = {"hardware": hardware} if hardware else {}
    points = tuple({**point.values, **place} for point in expand(space).points)
    return replace(space, axes={}, exclude=(), include=points)


def _count_cores(version: Version, hardware: str) -> int:
    """Return how many physical cores the smallest node of this hardware has, taken as half of its threads."""
    offers = node_offers(team=version.model.team, uploader=version.uploaded_by)
    chosen = [offer for offer in offers if hardware in ("", f"node:{offer.name}", *offer.tags)]
    return max(1, min((offer.cores or 1 for offer in chosen), default=1) // 2)


# a step of a race


def advance_finds() -> int:
    """Take every open race one step further where that is possible; returns how many moved."""
    moved = 0
    related = ("version__model__team", "version__artifact", "asked_by", "run")
    for row in Find.objects.filter(state__in=OPEN_FINDS).select_related(*related).order_by("pk"):
        try:
            moved += _advance(row)
        except Exception:
            log.exception("%s broke", row)
            _end(row, FindState.FAILED, why="Internal error during this search; see the farm's log.")
    return moved


def _advance(row: Find) -> bool:
    if row.state == FindState.MEASURING and row.run is not None and row.run.state != RunState.FINISHED:
        return False
    try:
        if row.state == FindState.MEASURING:
            return _record(row)
        race = rebuild_race(row)
    except SearchProblem as problem:
        return _end(row, FindState.FAILED, why=str(problem))
    if (experiment := race.next()) is None:
        return _end(row, FindState.ANSWERED, race)
    if (step := _find_measured(row, experiment)) is not None:
        steps = [*row.steps, {**experiment.asked, **step}]
        return row.move(FindState.WAITING, was=FindState.WAITING, steps=steps)
    try:
        return _start(row, experiment, left_s=60.0 * (row.question["minutes"] - row.minutes))
    except Refusal as refusal:
        return refusal.code not in PASSING and _end(row, FindState.FAILED, race, why=str(refusal))


def rebuild_race(row: Find) -> Race:
    """Rebuild a race from its row and its runs. Raises SearchProblem where one of these runs was removed or changed."""
    question, steps, known = row.question, row.steps, list_known_releases()
    rows = Run.objects.in_bulk([step["run"] for step in steps])
    if any(step["run"] not in rows for step in steps):
        raise SearchProblem("A run that this search rests on was removed.")
    matrix = parse(question["matrix"], allowed=settings.ALLOWED_PACKAGES)
    racing = [
        Contender(plain["digest"], values, plain["label"])
        for plain, values in zip(question["racing"], matrix.include, strict=True)
    ]

    def time_left() -> float:
        # as it was when the next step to record was ordered
        spent: float = sum(step["minutes"] for step in steps[: len(race.blocks)])
        return 1.0 - spent / float(question["minutes"])

    def fits(part: Matrix) -> bool:
        if len(race.blocks) < len(steps):
            return len(part.include) <= len(steps[len(race.blocks)]["settings"])
        plan = plan_run(version=row.version, matrix=part, known=known, with_null_pair=False)
        return contenders.fits_in(plan, 60.0 * question["minutes"] * time_left())

    limits = Limits(**question["limits"])
    race = Race(matrix, racing, question["goal"], limits, question["room"], fits, time_left)
    for step in steps:
        experiment = race.next()
        if experiment is None or any(step[name] != value for name, value in experiment.asked.items()):
            raise SearchProblem("What this search measured does not fit its next step any more: ask again.")
        race.record(Measured(matrix, runs.document(rows[step["run"]]), lambda name: {}))
    return race


def _find_measured(row: Find, experiment: Experiment) -> dict[str, object] | None:
    """Find the same short block among those of an earlier race for the same version, space and hardware, as a step that
    takes no minutes. It counts for MAX_AGE, where its machine was quiet and still takes blocks. A final block is always
    measured."""
    if experiment.asked["rounds"] is None:
        return None
    since = timezone.now() - MAX_AGE
    alike = {"version": row.version_id, "hardware": row.hardware, "question__matrix": row.question["matrix"]}
    alike |= {f"question__limits__{name}": row.question["limits"][name] for name in JUDGES}
    earlier = Find.objects.filter(**alike, started_at__gte=since).exclude(pk=row.pk).order_by("-pk")
    for step in (step for other in earlier for step in other.steps):
        if step.get("is_stopped") or any(step.get(name) != value for name, value in experiment.asked.items()):
            continue
        run = Run.objects.filter(pk=step["run"], finished_at__gte=since).first()
        if run is not None and _is_valid(run, row.question["goal"]):
            return {"run": run.pk, "minutes": 0.0, "used_again": f"{run.finished_at:%Y-%m-%d %H:%M} UTC"}
    return None


def _is_valid(run: Run, goal: Goal) -> bool:
    """Whether nodes that still take blocks measured all of a run while they were quiet, with the labels of today."""
    nodes = [block.node for block in run.blocks.select_related("node")]
    data = EvaluationData.objects.filter(version=run.version_id, asked_at__gt=run.created_at)
    if data.exists() or not all(node is not None and node.may_take_blocks for node in nodes):
        return False
    return not Standing.from_document(runs.document(run), goal).is_busy


def _start(row: Find, experiment: Experiment, *, left_s: float) -> bool:
    """Start a run: waiting → measuring. Raises Refusal."""
    if row.asked_by is None:
        raise NotAllowed("Whoever asked for this is no longer here.")
    rounds: Any = experiment.asked["rounds"]
    with transaction.atomic():
        run = start_run(
            version=row.version,
            matrix=experiment.matrix,
            requested_by=row.asked_by,
            reason=RunReason.FIND,
            known=list_known_releases(),
            reshape=partial(contenders.compare_every_pair, rounds=rounds, left_s=left_s),
        )
        asked = {**experiment.asked, "title": experiment.title, "tries": (row.asked or {}).get("tries", 0)}
        if not row.move(FindState.MEASURING, was=FindState.WAITING, run=run, asked=asked):
            transaction.set_rollback(True)
    return True


def _record(row: Find) -> bool:
    """Keep what the run measured: measuring → waiting. A run that measured nothing because its node was lost is
    measured again, and after MAX_TRIES ends the race with the best answer so far."""
    run, asked = row.run, row.asked or {}
    if run is None:
        return _end(row, FindState.FAILED, why="Its run was deleted.")
    if run.outcome == RunOutcome.CANCELLED:
        return _stop(row, run)
    step = {**asked, "run": run.pk, "minutes": minutes_of_run(run)}
    tries = int(asked.get("tries", 0)) + 1
    if why := _explain_loss(runs.document(run)):
        if tries == MAX_TRIES:
            return _end(row, FindState.FAILED, rebuild_race(row), why=why)
        return row.move(FindState.WAITING, was=FindState.MEASURING, run=None, asked={**asked, "tries": tries})
    moved = row.move(FindState.WAITING, was=FindState.MEASURING, steps=[*row.steps, step], run=None, asked=None)
    if moved:
        Find.objects.filter(pk=row.pk).update(**_make_answer(row, rebuild_race(row)))
    return moved


def _explain_loss(document: Document) -> str:
    """Say why nothing was measured, where that may not recur; else empty."""
    if any(cell.status is CellStatus.DONE for cell in document.cells):
        return ""
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return next((reason.text for reason in reasons if reason.code in PASSING_CODES), "")


def cancel_find(*, find: Find, by: User) -> Find:
    """Cancel the open races of a search and their runs. The best answers so far stay. Raises NotAllowed without the
    right to run in the team."""
    team = find.version.model.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view this search but not change it; ask an admin of team “{team.name}”.")
    for row in list_races(find):
        if not row.is_open:
            continue
        if row.run is not None:
            cancel_run(run=row.run, by=by)
            # its rounds are part of what is known
            for block in row.run.blocks.filter(state=BlockState.REPORTED):
                settle(block_id=block.pk, attempt=block.attempt)
        _stop(row, row.run)
    find.refresh_from_db()
    return find


def _stop(row: Find, run: Run | None) -> bool:
    """End a race with the best answer so far, with what the interrupted block measured."""
    try:
        race = rebuild_race(row)
    except SearchProblem as problem:
        return _end(row, FindState.CANCELLED, why=str(problem))
    if run is not None:
        race.record_interrupted(runs.document(run))
        step = {**(row.asked or {}), "run": run.pk, "minutes": minutes_of_run(run), "is_stopped": True}
        row.steps = [*row.steps, step]
    return _end(row, FindState.CANCELLED, race)


def _end(row: Find, state: FindState, race: Race | None = None, *, why: str = "") -> bool:
    """End a race with its answer; without `race` the answer so far stays. `why` goes before the sentence."""
    changes = {} if race is None else _make_answer(row, race, is_stopped=state == FindState.CANCELLED)
    changes["sentence"] = f"{why} {changes.get('sentence', row.sentence)}".strip()[:2000]
    changes |= {"steps": row.steps, "run": None, "asked": None, "ended_at": timezone.now()}
    return row.move(state, was=FindState(row.state), **changes)


def _make_answer(row: Find, race: Race, *, is_stopped: bool = False) -> dict[str, Any]:
    """Make the columns `answer` and `sentence`."""
    refused = [LeftSetting.model_validate(left) for left in row.question["refused"]]
    used_again = [step for step in row.steps if "used_again" in step]
    digests = {digest for step in used_again for digest in step["settings"]}
    path = str(row.version.artifact.main)
    facts = race_document.Facts(
        row.version.model.name,
        path,
        path,
        row.minutes,
        refused,
        is_stopped,
        server=str(settings.PUBLIC_URL),
        used_again=race_document.describe_used_again(len(digests), used_again[0]["used_again"]) if used_again else "",
    )
    document = race_document.make_document(race, facts)
    return {"answer": document.model_dump(mode="json", by_alias=True), "sentence": document.sentence[:2000]}
