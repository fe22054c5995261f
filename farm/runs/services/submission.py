"""Starts runs by writing their plan as rows in one transaction, cancels them, and continues them for more rounds.

A block waits until its variants and inputs are made and `max-parallel` leaves room for it. Then it is queued here.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from farm.accounts.models import Team, Token, User
from farm.accounts.selectors import can_write
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.cells import CellSpec
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.version import name_node_queue, name_tag_queue
from farm.fleet.models import Trial
from farm.fleet.services import begin_trial
from farm.fleet.states import NodeHealth, TrialState
from farm.registry.models import Preparation, Variant, Version
from farm.registry.services import check_has_files, ensure_preparation, ensure_variant
from farm.registry.states import MakingState
from farm.rules.planning import plans
from farm.rules.planning.plans import Plan, PlannedBlock
from farm.rules.planning.time_left import format_about
from farm.rules.runtimes.releases import NOTHING_MORE, Known
from farm.rules.wording.numbers import counted
from farm.runs.models import Arm, Beside, Block, Cell, Run
from farm.runs.selectors.compared_versions import explain_different_inputs, list_other_versions
from farm.runs.selectors.evidence import UNMAKEABLE
from farm.runs.selectors.retention import explain_removed_timings
from farm.runs.services.endings import finish_run_if_over, stop_block
from farm.runs.services.hints import hint_on_commit
from farm.runs.services.locks import lock_run
from farm.runs.services.run_plans import Declared, check_plan, plan_run, read_matrix
from farm.runs.states import OPEN_BLOCKS, BlockState, EventKind, RunReason, RunState

# how many blocks are examined for release in one tick, which has to stay short, and how many when a run starts
MAX_AT_ONCE = 64
MAX_AT_START = 8
UNFINISHED = (MakingState.PENDING, MakingState.MAKING)
# open runs of one team at a time, against scripts that start runs without end
MAX_OPEN_RUNS = 1000
BATCH = 500
# farm.contract.blocks.BlockOrder allows no more
MAX_ROUNDS = 96


def start_run(
    *,
    version: Version,
    matrix: Declared,
    requested_by: User,
    reason: RunReason = RunReason.ASKED,
    seed: int = 0,
    known: Known = NOTHING_MORE,
    gate: Token | None = None,
    reshape: Callable[[PlannedBlock], PlannedBlock] | None = None,
) -> Run:
    """Plan and start a run: write its rows, order its variants, inputs and trials, and queue the first blocks.

    `known` holds the releases that package indexes offer. `gate` is the token of the request, if it may only run gates.
    A search passes `reshape`, which changes each planned block; no block then gets an A/A pair. Raises NotAllowed
    without the right to run in the model's team, Invalid for a bad matrix, Conflict for a version that is not ready or
    a team with too many open runs, and Unprocessable for a plan with a problem.
    """
    team = version.model.team
    if not can_write(requested_by, team=team):
        raise NotAllowed(f"You can view the models of team “{team.name}” but not start runs of them.")

    # plan
    declared = read_matrix(matrix)
    beside = list_other_versions(version, declared)
    # earlier versions are stored by number, as they may be deleted
    declared = replace(declared, models=tuple(f"{side.model.name}@{side.number}" for side in beside))
    plan = plan_run(version=version, matrix=declared, seed=seed, known=known, with_null_pair=reshape is None)
    check_plan(plan)
    if reshape is not None:
        plan = plan.model_copy(update={"blocks": tuple(map(reshape, plan.blocks))})

    with transaction.atomic():
        _check_open_runs(team)
        run = Run.objects.create(
            team=team,
            version=version,
            requested_by=requested_by,
            gate=gate,
            reason=reason,
            matrix=declared.as_plain(),
            seed=seed,
            budget=plan.budget,
            max_parallel=plan.max_parallel,
            fail_fast=plan.fail_fast,
            minutes=plan.minutes,
            cell_count=plan.cells + len(plan.refused),
        )
        _write_plan(run, plan, beside)
        run.start()
        # a run whose points were all refused is over
        finish_run_if_over(run)

    release_ready_blocks(run=run, limit=MAX_AT_START)
    return run


def _check_open_runs(team: Team) -> None:
    open_runs = Run.objects.filter(team=team).exclude(state=RunState.FINISHED).count()
    if open_runs >= MAX_OPEN_RUNS:
        text = f"Your team has {open_runs} runs that are not finished; cancel some or wait."
        raise Conflict(text, code="too_many_runs")


def _write_plan(run: Run, plan: Plan, beside: Sequence[Version]) -> None:
    rows = [Beside(run=run, version=version, number=number) for number, version in enumerate(beside)]
    cells = _write_cells(run, plan, Beside.objects.bulk_create(rows))
    _write_blocks(run, plan, cells)
    run.log(EventKind.RUN_STARTED, _describe_plan(plan), cells=plan.cells, blocks=len(plan.blocks))
    if beside and (difference := explain_different_inputs([*beside, run.version])):
        run.log(EventKind.RUN_STARTED, f"They take different inputs ({difference}): compared by time alone.")


def _write_cells(run: Run, plan: Plan, beside: Sequence[Beside]) -> dict[str, Cell]:
    """Write a row for every point, measured or refused; return them by their name in the plan."""
    rows_beside = {row.version.artifact.bundle.digest: row for row in beside}
    orders = _Orders(run, rows_beside)
    rows: dict[str, Cell] = {}
    for block in plan.blocks:
        for arm in block.arms:
            if arm.cell not in rows:
                cell = _make_cell(run, arm.cell, arm.spec, rows_beside.get(arm.spec.artifact_sha256))
                cell.positions, cell.labels = arm.positions, arm.labels
                cell.variant = orders.order_variant(arm.spec)
                cell.preparation = orders.order_preparation(arm.spec)
                cell.trial = orders.order_trial(arm)
                rows[arm.cell] = cell
    for point in plan.refused:
        cell = _make_cell(run, point.id, point.spec, rows_beside.get(point.spec.artifact_sha256))
        cell.positions, cell.labels = point.positions, point.labels
        mark_refused(cell, point.reason)
        cell.way_out = point.way_out.model_dump(mode="json") if point.way_out else None
        rows[point.id] = cell
    Cell.objects.bulk_create(rows.values(), batch_size=BATCH)
    return rows


class _Orders:
    """Orders the variants, inputs and trials that the cells of a run need, each of them once."""

    def __init__(self, run: Run, beside: Mapping[str, Beside]) -> None:
        self._artifact, self._user = run.version.artifact, run.requested_by
        self._artifacts_beside = {digest: row.version.artifact for digest, row in beside.items()}
        self._trials: dict[tuple[str, str], Trial] = {}
        self._variants: dict[tuple[str, str], Variant] = {}
        self._preparations: dict[tuple[str, str], Preparation] = {}

    def order_variant(self, spec: CellSpec) -> Variant:
        key = spec.artifact_sha256, spec.recipe.model_dump_json()
        if key not in self._variants:
            artifact = self._artifacts_beside.get(spec.artifact_sha256, self._artifact)
            self._variants[key] = ensure_variant(artifact=artifact, recipe=spec.recipe)
        return self._variants[key]

    def order_trial(self, arm: plans.Arm) -> Trial | None:
        if not arm.trial:
            return None
        node, provider = arm.trial, arm.spec.provider
        if (node, provider) not in self._trials:
            self._trials[node, provider] = begin_trial(node=int(node), provider=provider, by=self._user)
        return self._trials[node, provider]

    def order_preparation(self, spec: CellSpec) -> Preparation:
        key = spec.artifact_sha256, spec.workload.model_dump_json()
        if key not in self._preparations:
            artifact = self._artifacts_beside.get(spec.artifact_sha256, self._artifact)
            self._preparations[key] = ensure_preparation(artifact=artifact, workload=spec.workload)
        return self._preparations[key]


def _make_cell(run: Run, name: str, spec: CellSpec, beside: Beside | None) -> Cell:
    return Cell(
        run=run,
        beside=beside,
        name=name,
        # cells are named c1, c2, … in the order of the matrix
        number=int("".join(filter(str.isdecimal, name)) or 0),
        digest=spec.digest,
        spec_json=spec.model_dump(mode="json"),
        runtime=str(spec.runtime),
        provider=spec.provider,
        batch=spec.workload.batch,
        precision=spec.recipe.precision,
        opset=str(spec.recipe.opset),
        threads=spec.session.threads,
        hardware=spec.hardware,
    )


def mark_refused(row: Cell | Arm, reason: Reason) -> None:
    """Give a cell or arm that will not run its status and reason, without saving it."""
    row.status = reason.status if reason.status != CellStatus.DONE else CellStatus.REFUSED
    row.reason_code, row.reason_text = reason.code, reason.text


def _write_blocks(run: Run, plan: Plan, cells: dict[str, Cell]) -> None:
    rows = [_make_block(run, planned, number) for number, planned in enumerate(plan.blocks, start=1)]
    Block.objects.bulk_create(rows, batch_size=BATCH)
    arms = [
        Arm(block=row, cell=cells[arm.cell], number=arm.arm, name=arm.id, twin_of=arm.twin_of)
        for row, planned in zip(rows, plan.blocks, strict=True)
        for arm in planned.arms
    ]
    Arm.objects.bulk_create(arms, batch_size=BATCH)


def _make_block(run: Run, planned: PlannedBlock, number: int) -> Block:
    hardware = sorted({arm.spec.hardware for arm in planned.arms})
    seed = hashlib.sha256(f"{run.pk}:{run.seed}:{number}".encode()).digest()
    return Block(
        run=run,
        number=number,
        hardware=", ".join(hardware)[:200],
        queues=_list_queues(planned),
        seed=int.from_bytes(seed[:4], "big"),
        max_rounds=planned.max_rounds,
        plan_json=planned.model_dump(mode="json"),
    )


def _list_queues(planned: PlannedBlock) -> list[str]:
    """Return the queue of the block's rarest tag; without a tag, the queues of the nodes that may take it.

    A block that waits for a trial goes to the node of the trial, since another node may never prove the tag.
    """
    if trying := {name_node_queue(arm.trial) for arm in planned.arms if arm.trial is not None}:
        return sorted(trying)
    if planned.tags:
        return [name_tag_queue(planned.tags[0])]
    return [name_node_queue(node) for node in planned.nodes]


def _describe_plan(plan: Plan) -> str:
    refused = f", {counted(len(plan.refused), 'point')} refused" if plan.refused else ""
    if not plan.blocks:
        return f"Nothing to measure{refused}."
    size = f"{counted(plan.cells, 'cell')} in {counted(len(plan.blocks), 'block')}"
    return f"{size}{refused}, {format_about(60.0 * plan.minutes)}."


def release_ready_blocks(*, run: Run | None = None, limit: int = MAX_AT_ONCE) -> int:
    """Queue waiting blocks whose inputs, trials and labelled data are ready, of `run` or of all runs; return how many.

    Cells whose inputs cannot be made are refused, and a block with no other cells fails. At most `limit` blocks are
    read; those that exceed `max-parallel` of their run go on waiting, and are not counted.
    """
    unmade = Q(cell__variant__state__in=UNFINISHED) | Q(cell__preparation__state__in=UNFINISHED)
    unmade |= Q(cell__trial__state=TrialState.PENDING)
    waiting = Block.objects.filter(state=BlockState.WAITING, run__state=RunState.RUNNING)
    # labelled data of the model are checked before any cell is judged on them
    waiting = waiting.exclude(run__version__evaluation__state__in=UNFINISHED)
    waiting = waiting.exclude(run__beside__version__evaluation__state__in=UNFINISHED)
    if run is not None:
        waiting = waiting.filter(run=run)
    ready = waiting.exclude(Exists(Arm.objects.filter(unmade, block=OuterRef("pk")))).select_related("run")
    return sum(_release_block(block) for block in ready.order_by("run_id", "number")[:limit])


def _release_block(block: Block) -> bool:
    with transaction.atomic():
        run = lock_run(block.run_id)
        if run.max_parallel is not None:
            busy = run.blocks.filter(state__in=(BlockState.QUEUED, BlockState.LEASED)).count()
            if busy >= run.max_parallel:
                return False
        block.run = run
        reason = _refuse_unmakeable_arms(block)
        if reason is not None and not block.arms.filter(status="").exists():
            block.fail(reason)
            finish_run_if_over(run)
            return False
        if not block.queue(came_from=BlockState.WAITING):
            return False
        hint_on_commit(block)
    return True


def _refuse_unmakeable_arms(block: Block) -> Reason | None:
    """Refuse arms whose variant, inputs or trial have failed; return the reason of the last of them, if any."""
    last_reason: Reason | None = None
    related = ("cell__variant", "cell__preparation", "cell__trial__node", "cell__trial__answered_by")
    for arm in block.arms.filter(UNMAKEABLE, status="").select_related(*related):
        cell = arm.cell
        makings = [making for making in (cell.variant, cell.preparation, cell.trial) if making is not None]
        reason = next((making.reason for making in makings if making.reason is not None), None)
        if reason is None:
            continue
        last_reason = reason
        ending = {"status": reason.status, "reason_code": reason.code, "reason_text": reason.text}
        Arm.objects.filter(pk=arm.pk).update(**ending)
        Cell.objects.filter(pk=cell.pk, status="").update(**ending)
        block.log(EventKind.CELL_ENDED, f"{cell.name}: {reason.text}", cell=cell.name, code=reason.code)
    return last_reason


def cancel_run(*, run: Run, by: User) -> Run:
    """Cancel a run and return it as it is then. Cancelling a finished run changes nothing.

    Reported rounds stay, and nodes stop measuring at their next heartbeat. Raises NotAllowed without the right to run
    in the run's team.
    """
    _check_may_write(run, by)
    reason = Reason(code=ReasonCode.CANCELLED, text=f"Cancelled by {by.username}.")
    with transaction.atomic():
        row = lock_run(run.pk)
        if row.state != RunState.FINISHED:
            row.log(EventKind.RUN_CANCELLED, reason.text, by=by.pk)
            for block in row.blocks.select_for_update().filter(state__in=OPEN_BLOCKS):
                block.run = row
                stop_block(block, reason)
            finish_run_if_over(row)
    row.refresh_from_db()
    return row


def measure_more_rounds(
    *, run: Run, by: User, rounds: int, blocks: Collection[int] | None = None, asker: str = ""
) -> list[Block]:
    """Queue done blocks again for this many more rounds, on the nodes that began them; return those blocks.

    `blocks` holds the numbers of blocks in the run; None means every done block with an undecided comparison. Blocks
    that have MAX_ROUNDS already or have lost their node are left out, and no block gets more than MAX_ROUNDS in all.
    The log names `asker`, or `by` if it is empty. Raises NotAllowed without the right to run in the team, Invalid for
    a block that is unknown or not done or a number of rounds out of range, and Conflict if no block can continue or the
    raw timings or the model's files were removed.
    """
    _check_may_write(run, by)
    if not 1 <= rounds <= MAX_ROUNDS:
        raise Invalid(f"{rounds} more rounds cannot be measured; ask for 1 to {MAX_ROUNDS}.", code="rounds")
    with transaction.atomic():
        row = lock_run(run.pk)
        if removal := explain_removed_timings(row):
            raise Conflict(removal, code="retention", hint="Start a new run to measure again.")
        for version in row.versions:
            check_has_files(version)
        continuable = _choose_blocks(row, blocks)
        if row.state == RunState.FINISHED and not row.resume():
            raise Conflict(f"Run {row.pk} is {row.state}.")
        for block in continuable:
            _queue_more_rounds(block, rounds)
        size = f"{counted(rounds, 'more round')} of {counted(len(continuable), 'block')}"
        text = f"{asker or by.username} asked for {size}."
        row.log(EventKind.MORE_ROUNDS, text, blocks=[block.number for block in continuable], rounds=rounds)
    return continuable


def _choose_blocks(run: Run, numbers: Collection[int] | None) -> list[Block]:
    """Return the blocks that can measure more rounds. Raises Invalid and Conflict as `measure_more_rounds`."""
    done = run.blocks.select_for_update(of=("self",)).select_related("only_node", "node").filter(state=BlockState.DONE)
    if numbers is None:
        undecided = run.comparisons.filter(verdict="undecided").values("block_id")
        chosen = list(done.filter(pk__in=undecided))
    else:
        chosen = list(done.filter(number__in=numbers))
        missing = sorted(set(numbers) - {block.number for block in chosen})
        if missing:
            raise Invalid(f"Run {run.pk} has no done block {', '.join(map(str, missing))}.", code="unknown_block")
    continuable = [
        block
        for block in chosen
        if block.rounds < MAX_ROUNDS and block.node is not None and block.node.health != NodeHealth.RETIRED
    ]
    if not continuable:
        raise Conflict(
            "No block of this run can continue: each is decided or being settled, has all its rounds, or "
            "lost its node.",
            code="nothing_to_continue",
            hint="Start a new run to measure again.",
        )
    for block in continuable:
        block.run = run
    return continuable


def _queue_more_rounds(block: Block, rounds: int) -> None:
    block.queue(
        EventKind.BLOCK_REQUEUED,
        came_from=BlockState.DONE,
        text=f"Block {block.number} continues for {rounds} more rounds.",
        only_node=block.node,
        first_round=block.rounds,
        max_rounds=min(MAX_ROUNDS, block.rounds + rounds),
        failures=0,
    )
    hint_on_commit(block)


def _check_may_write(run: Run, user: User) -> None:
    if not Run.objects.writable_by(user).filter(pk=run.pk).exists():
        raise NotAllowed(f"You can view run {run.pk} but not change it; ask an admin of its team.")
