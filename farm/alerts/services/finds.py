"""Searches for the settings to ship on the farm's nodes: one race for each kind of hardware, one run for each block.

Each tick rebuilds a race from its row and the documents of its runs; nothing else is stored between ticks. A run that
measured nothing because its node was lost is measured again.
"""

import logging
from dataclasses import asdict, replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.alerts.models import Find
from farm.alerts.selectors.finds import list_races
from farm.alerts.selectors.releases import list_known_releases
from farm.alerts.services.measurements import TRANSIENT_REFUSALS
from farm.alerts.states import OPEN_FINDS, FindState
from farm.base.refusals import Invalid, NotAllowed, Refusal
from farm.contract.api.finds import FindOrder
from farm.contract.document import Document
from farm.contract.document_find import Goal, LeftSetting
from farm.contract.reasons import CellStatus, ReasonCode
from farm.fleet.selectors import node_offers
from farm.registry.models import EvaluationData, Version
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices.matrix import Matrix, parse
from farm.rules.matrices.points import expand
from farm.rules.matrices.spaces import BATCHES, default_space
from farm.rules.runtimes.releases import Known
from farm.rules.searches import contenders, race_document
from farm.rules.searches.block_costs import BlockCosts
from farm.rules.searches.limits import Limits
from farm.rules.searches.race import Contender, Race
from farm.rules.searches.search import Experiment, Measured, SearchProblem
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.selectors.minutes import minutes_of_run
from farm.runs.services import cancel_run, plan_run, settle, start_run
from farm.runs.states import BlockState, RunOutcome, RunReason, RunState

# how often a block is tried where its node is lost each time before anything was measured
MAX_TRIES = 3
# how old a block of another race may be to be used again
# (both races have to judge outputs alike: JUDGING_LIMITS)
MAX_AGE = timedelta(days=1)
JUDGING_LIMITS = ("has_labels", "has_tolerance")
# reasons of cells after which a block is measured again
TRANSIENT_REASONS = (ReasonCode.NODE_LOST, ReasonCode.INTERNAL)
log = logging.getLogger(__name__)


def start_find(*, version: Version, by: User, order: FindOrder) -> Find:
    """Start a search: write a row for each race, which the tick then measures, and return the first.

    An order that names no hardware gets a single race. Raises NotAllowed without the right to run in the model's team,
    Invalid for an order that cannot be carried out or where fewer than two settings of the space run on some hardware,
    and what planning raises.
    """
    team = version.model.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view the models of team “{team.name}” but not start runs of them.")
    if len(set(order.hardware)) != len(order.hardware):
        raise Invalid("Name each kind of hardware once.", code="hardware")
    releases = list_known_releases()
    columns = [
        {"hardware": hardware, "question": _plan_race(version, hardware, order, releases)}
        for hardware in order.hardware or [""]
    ]
    with transaction.atomic():
        first = Find.objects.create(version=version, asked_by=by, **columns[0])
        for columns_of_race in columns[1:]:
            Find.objects.create(version=version, asked_by=by, first=first, **columns_of_race)
    return first


def _plan_race(version: Version, hardware: str, order: FindOrder, releases: Known) -> dict[str, object]:
    """Return the column `question` of one race. Raises Invalid."""
    space = _make_space(version, hardware, order)
    plan = plan_run(version=version, matrix=space, known=releases, with_null_pair=False)
    racing, refused = contenders.split_contenders(plan, space, order.goal)
    if problem := contenders.explain_no_race(racing, refused):
        raise Invalid(f"{hardware}: {problem}" if hardware else problem, code="space")
    row = EvaluationData.objects.filter(version=version).first()
    has_labels = row is not None and row.order is not None
    limits = Limits(**order.budgets, has_labels=has_labels, has_tolerance=bool(space.tolerances))
    if order.min_accuracy is not None and not has_labels:
        raise Invalid("An accuracy is judged on labelled data: add some to the version first.", code="no_labels")
    return {
        "goal": order.goal,
        "limits": asdict(limits),
        "minutes": order.minutes,
        "matrix": replace(
            space, axes={}, exclude=(), include=tuple(contender.values for contender in racing)
        ).as_plain(),
        "racing": [{"digest": contender.digest, "label": contender.label} for contender in racing],
        "refused": [setting.model_dump(mode="json") for setting in refused],
        "room": max(len(block.arms) for block in plan.blocks),
    }


def _make_space(version: Version, hardware: str, order: FindOrder) -> Matrix:
    """Make the space of a race as a list of points, each with the race's hardware. Raises Invalid."""
    try:
        if order.space is None:
            declared = ({"batch": BATCHES} if order.goal == "throughput" else {}) | order.beside
            beside = parse(declared, allowed=settings.ALLOWED_PACKAGES) if declared else None
            space = default_space(order.providers, cores=_count_cores(version, hardware), beside=beside)
        else:
            space = parse(order.space, allowed=settings.ALLOWED_PACKAGES)
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


def advance_finds() -> int:
    """Advance every open race by one step where that is possible; return how many were advanced.

    A race that ends, answered or failed, counts too. One whose step raises an unexpected error is logged, ended as
    failed with its answer so far, and not counted.
    """
    count = 0
    related = ("version__model__team", "version__artifact", "asked_by", "run")
    for row in Find.objects.filter(state__in=OPEN_FINDS).select_related(*related).order_by("pk"):
        try:
            count += _advance(row)
        except Exception:
            log.exception("%s broke", row)
            _end_race(row, FindState.FAILED, reason="Internal error during this search; see the farm's log.")
    return count


def _advance(row: Find) -> bool:
    if row.state == FindState.MEASURING and row.run is not None and row.run.state != RunState.FINISHED:
        return False
    try:
        if row.state == FindState.MEASURING:
            return _record_run(row)
        race = load_race(row)
    except SearchProblem as problem:
        return _end_race(row, FindState.FAILED, reason=str(problem))
    experiment = race.next()
    if experiment is None:
        return _end_race(row, FindState.ANSWERED, race)
    reusable = _find_reusable_step(row, experiment)
    if reusable is not None:
        steps = [*row.steps, {**experiment.asked, **reusable}]
        return row.move(FindState.WAITING, was=FindState.WAITING, steps=steps)
    try:
        return _start_measuring(row, experiment, left_s=60.0 * (row.question["minutes"] - row.minutes))
    except Refusal as refusal:
        if refusal.code in TRANSIENT_REFUSALS:
            return False
        return _end_race(row, FindState.FAILED, race, reason=str(refusal))


def load_race(row: Find) -> Race:
    """Rebuild a race from its row: start it anew, and record the document of each step's run in turn.

    Raises SearchProblem where one of these runs was removed, or does not fit the step that the race asks for.
    """
    question, steps, releases = row.question, row.steps, list_known_releases()
    runs_by_id = Run.objects.in_bulk([step["run"] for step in steps])
    if any(step["run"] not in runs_by_id for step in steps):
        raise SearchProblem("A run that this search rests on was removed.")
    matrix = parse(question["matrix"], allowed=settings.ALLOWED_PACKAGES)
    racing = [
        Contender(setting["digest"], values, setting["label"])
        for setting, values in zip(question["racing"], matrix.include, strict=True)
    ]

    # The race asks these two before each block. While it records a stored step, they have to answer as they did when
    # that step was ordered; `len(race.blocks)` is the number of the next step.

    def time_left() -> float:
        spent: float = sum(step["minutes"] for step in steps[: len(race.blocks)])
        return 1.0 - spent / float(question["minutes"])

    def fits(part: Matrix) -> bool:
        is_stored = len(race.blocks) < len(steps)
        if is_stored:
            return len(part.include) <= len(steps[len(race.blocks)]["settings"])
        plan = plan_run(version=row.version, matrix=part, known=releases, with_null_pair=False)
        return contenders.fits_in(plan, 60.0 * question["minutes"] * time_left())

    race = Race(
        matrix,
        racing,
        goal=question["goal"],
        limits=Limits(**question["limits"]),
        max_in_block=question["room"],
        fits=fits,
        time_left=time_left,
    )
    for step in steps:
        experiment = race.next()
        if experiment is None or any(step[name] != value for name, value in experiment.asked.items()):
            raise SearchProblem("The measurements no longer match the next step. Start a new search.")
        race.record(Measured(matrix, runs.document(runs_by_id[step["run"]]), lambda name: {}))
    return race


def _find_reusable_step(row: Find, experiment: Experiment) -> dict[str, object] | None:
    """Find a step of another race that measured the same block, and return it as a step that costs no minutes.

    Return None where there is none, and for a final block, which is always measured anew. The other race must have the
    same version, space and hardware, and its block must be at most MAX_AGE old and measured on quiet machines.
    """
    if experiment.asked["rounds"] is None:
        return None
    since = timezone.now() - MAX_AGE
    alike = {"version": row.version_id, "hardware": row.hardware, "question__matrix": row.question["matrix"]}
    alike |= {f"question__limits__{name}": row.question["limits"][name] for name in JUDGING_LIMITS}
    races = Find.objects.filter(**alike, started_at__gte=since).exclude(pk=row.pk).order_by("-pk")
    for step in (step for race in races for step in race.steps):
        if step.get("is_stopped") or any(step.get(name) != value for name, value in experiment.asked.items()):
            continue
        run = Run.objects.filter(pk=step["run"], finished_at__gte=since).first()
        if run is not None and _is_reusable(run, row.question["goal"]):
            return {"run": run.pk, "minutes": 0.0, "used_again": f"{run.finished_at:%Y-%m-%d %H:%M} UTC"}
    return None


def _is_reusable(run: Run, goal: Goal) -> bool:
    """Say whether the run was measured with the present labelled data, on quiet nodes that still take blocks."""
    nodes = [block.node for block in run.blocks.select_related("node")]
    data = EvaluationData.objects.filter(version=run.version_id, asked_at__gt=run.created_at)
    if data.exists() or not all(node is not None and node.may_take_blocks for node in nodes):
        return False
    return not BlockCosts.from_document(runs.document(run), goal).is_busy


def _start_measuring(row: Find, experiment: Experiment, *, left_s: float) -> bool:
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
        order = {**experiment.asked, "title": experiment.title, "tries": (row.asked or {}).get("tries", 0)}
        has_moved = row.move(FindState.MEASURING, was=FindState.WAITING, run=run, asked=order)
        if not has_moved:
            transaction.set_rollback(True)
    return has_moved


def _record_run(row: Find) -> bool:
    """Store the finished run as a step: measuring → waiting.

    If nothing was measured because the node was lost, the block is measured again; after MAX_TRIES the race fails with
    the best answer so far.
    """
    run, order = row.run, row.asked or {}
    if run is None:
        return _end_race(row, FindState.FAILED, reason="Its run was deleted.")
    if run.outcome == RunOutcome.CANCELLED:
        return _cancel_race(row, run)
    tries = int(order.get("tries", 0)) + 1
    if loss := _explain_loss(runs.document(run)):
        if tries == MAX_TRIES:
            return _end_race(row, FindState.FAILED, load_race(row), reason=loss)
        return row.move(FindState.WAITING, was=FindState.MEASURING, run=None, asked={**order, "tries": tries})
    step = {**order, "run": run.pk, "minutes": minutes_of_run(run)}
    is_moved = row.move(FindState.WAITING, was=FindState.MEASURING, steps=[*row.steps, step], run=None, asked=None)
    if is_moved:
        Find.objects.filter(pk=row.pk).update(**_make_answer(row, load_race(row)))
    return is_moved


def _explain_loss(document: Document) -> str:
    """Return the transient reason why no cell was measured; empty where a cell was, or where no reason is transient."""
    if any(cell.status is CellStatus.DONE for cell in document.cells):
        return ""
    reasons = [cell.reason for cell in document.cells if cell.reason is not None]
    return next((reason.text for reason in reasons if reason.code in TRANSIENT_REASONS), "")


def cancel_find(*, find: Find, by: User) -> Find:
    """Cancel the open races of a search and their runs; return the search, which `find` has to be the first race of.

    The best answers so far stay. Nothing changes where no race is open. Raises NotAllowed without the right to run in
    the team.
    """
    team = find.version.model.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view this search but not change it; ask an admin of team “{team.name}”.")
    with transaction.atomic():
        # the tick, which may just be starting their next runs, waits for the end of this transaction
        list(Find.objects.select_for_update().filter(Q(pk=find.pk) | Q(first=find)))
        for row in list_races(find):
            if not row.is_open:
                continue
            if row.run is not None:
                cancel_run(run=row.run, by=by)
                # count the rounds that were reported before the cancellation
                for block in row.run.blocks.filter(state=BlockState.REPORTED):
                    settle(block_id=block.pk, attempt=block.attempt)
            _cancel_race(row, row.run)
    find.refresh_from_db()
    return find


def _cancel_race(row: Find, run: Run | None) -> bool:
    """End a race as cancelled, with the best answer so far; the rounds of the interrupted block `run` count in it."""
    try:
        race = load_race(row)
    except SearchProblem as problem:
        return _end_race(row, FindState.CANCELLED, reason=str(problem))
    if run is not None:
        race.record_interrupted(runs.document(run))
        step = {**(row.asked or {}), "run": run.pk, "minutes": minutes_of_run(run), "is_stopped": True}
        row.steps = [*row.steps, step]
    return _end_race(row, FindState.CANCELLED, race)


def _end_race(row: Find, state: FindState, race: Race | None = None, *, reason: str = "") -> bool:
    """End a race with its answer; without `race` the answer so far stays. The sentence begins with `reason`."""
    changes = {} if race is None else _make_answer(row, race, is_stopped=state == FindState.CANCELLED)
    changes["sentence"] = f"{reason} {changes.get('sentence', row.sentence)}".strip()[:2000]
    changes |= {"steps": row.steps, "run": None, "asked": None, "ended_at": timezone.now()}
    return row.move(state, was=FindState(row.state), **changes)


def _make_answer(row: Find, race: Race, *, is_stopped: bool = False) -> dict[str, Any]:
    """Make the columns `answer` and `sentence`."""
    used_again = [step for step in row.steps if "used_again" in step]
    digests = {digest for step in used_again for digest in step["settings"]}
    path = str(row.version.artifact.main)
    facts = race_document.Facts(
        model=row.version.model.name,
        path=path,
        saved=path,
        minutes=row.minutes,
        refused=[LeftSetting.model_validate(setting) for setting in row.question["refused"]],
        is_stopped=is_stopped,
        server=str(settings.PUBLIC_URL),
        reuse_note=race_document.describe_reuse(len(digests), used_again[0]["used_again"]) if used_again else "",
    )
    document = race_document.make_document(race, facts)
    return {"answer": document.model_dump(mode="json", by_alias=True), "sentence": document.sentence[:2000]}
