"""Taking reports: strict, plausible, once. The answer says whether the node measures another round."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from farm.base.refusals import Conflict, Refusal, TooLarge, Unprocessable
from farm.contract.base import digest_json
from farm.contract.divergence import DivergenceReport
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import AccuracyReport, CheckReport, EndReport, Reply, Report, RoundReport
from farm.fleet.models import Node
from farm.fleet.states import NodeEventKind
from farm.rules.judging.block_verdicts import BlockJudge, surely_goes_on
from farm.rules.planning.plans import max_rounds_to_order
from farm.runs import clocks
from farm.runs.models import NONE, Arm, Attempt, Block
from farm.runs.selectors.divergences import questions_of
from farm.runs.selectors.evidence import judged_reports
from farm.runs.selectors.sides import evaluation_beside
from farm.runs.services.divergences import keep_divergence
from farm.runs.services.endings import end_arms, end_attempt, stop_block
from farm.runs.services.leases import Held, held_attempt
from farm.runs.services.locks import lock_block, mark_run
from farm.runs.services.plausibility import check_labelled, check_ordered, check_report, check_wall_clock
from farm.runs.states import OPEN_BLOCKS, AttemptState, BlockState, EventKind

log = logging.getLogger(__name__)
# of all reports of one attempt; 16 arms with five traces of 2,000 operators each have some 30 million
MAX_REPORTED_BYTES = 64_000_000
REFUSED_ONCE_IN = timedelta(minutes=10)


def end_failed_arms(block: Block, report: Report) -> None:
    """Ends the arms that this report gives a reason for; under fail-fast, also every block that is not begun."""
    failed = False
    for number, reason in reasons_in(report):
        arm = block.arms.filter(number=number, status="").select_related("cell").first()
        if arm is not None:
            end_arms(Arm.objects.filter(pk=arm.pk), reason)
            text = f"{arm.name} ended as {reason.status}: {reason.text}"
            block.log(EventKind.CELL_ENDED, text, cell=arm.cell.name, code=reason.code)
            failed = True
    if failed and block.run.fail_fast:
        _stop_others(block)


def reasons_in(report: Report) -> list[tuple[int, Reason]]:
    """The arms that the report says have failed, and why."""
    match report:
        case CheckReport(reason=Reason() as reason):
            return [(report.arm, reason)]
        case RoundReport():
            return [(place.arm, place.reason) for place in report.samples if place.reason is not None]
        case _:
            return []


def _stop_others(block: Block) -> None:
    reason = Reason(code=ReasonCode.FAIL_FAST, text="Another cell of this run failed, and the matrix says `fail-fast`.")
    for other in block.run.blocks.exclude(pk=block.pk).filter(state__in=OPEN_BLOCKS):
        other.run = block.run
        stop_block(other, reason)


class Place(NamedTuple):
    """Where a report stands in its attempt; two of the same place are the same report."""

    kind: str
    arm: int
    round: int

    @classmethod
    def of(cls, report: Report) -> "Place":
        arm = getattr(report, "arm", NONE)
        number = getattr(report, "round", getattr(report, "trace_round", NONE))
        return cls(report.kind, arm, number)


class Answered(NamedTuple):
    """A report that was kept: what tells it from others, and its answer as JSON text."""

    digest: str
    reply: str


def accept_report(*, node: Node, block_id: str, attempt: int, token: str, report: Report) -> Reply:
    """Keeps a report of the current attempt and answers it; the same report again gets the same answer.

    Raises Conflict when it is stale (or differs from what was sent before), NotAllowed for another's token and
    Unprocessable when it cannot be true. A refused report changes nothing but the logs.
    """
    held = held_attempt(node=node, block_id=block_id, attempt=attempt, token=token)
    place, digest = Place.of(report), digest_json(report.model_dump(mode="json"))
    earlier = _earlier(held.attempt)
    known = _known(earlier, held.attempt, place, digest)
    if known is not None:
        return known
    if not held.is_current:
        raise Conflict(f"Attempt {attempt} at block {block_id} is over and accepts no more reports.", code="stale")
    try:
        timed_s = _checked(report, held, measured=sum(part.kind == "round" for part in earlier))
    except Unprocessable as refusal:
        note_refused(node, held.block, refusal)
        raise
    reply = _judged(report, held)
    try:
        _keep(report, held, place=place, digest=digest, reply=reply, timed_s=timed_s)
    except IntegrityError:
        # the same report twice at the same moment: the other one is kept
        known = _known(_earlier(held.attempt), held.attempt, place, digest)
        if known is None:
            raise
        return known
    return reply


def note_refused(node: Node, block: Block, refusal: Refusal) -> None:
    """Writes a refused report into the run's and the node's log; the same refusal soon after is one line."""
    log.warning("Report of %s on block %s refused: %s", node.name, block.pk, refusal.detail)
    same = {"facts__node": node.pk, "facts__code": refusal.code, "at__gt": timezone.now() - REFUSED_ONCE_IN}
    if block.events.filter(kind=EventKind.REPORT_REFUSED, **same).exists():
        return
    block.log(EventKind.REPORT_REFUSED, refusal.detail, node=node.pk, code=refusal.code)
    node.log(NodeEventKind.REFUSED, refusal.detail, code=refusal.code, block=block.pk)


def _earlier(attempt: Attempt) -> dict[Place, Answered]:
    rows = attempt.reports.order_by().values_list("kind", "arm", "round", "digest", "reply")
    return {Place(kind, arm, number): Answered(digest, reply) for kind, arm, number, digest, reply in rows}


def _known(earlier: Mapping[Place, Answered], attempt: Attempt, place: Place, digest: str) -> Reply | None:
    """The answer that this report got before. Raises Conflict when another one stands in its place."""
    answered = earlier.get(place)
    if answered is None:
        return None
    if answered.digest != digest:
        raise Conflict(
            f"Attempt {attempt.number} has sent another {place.kind} report for this place before.",
            code="contradiction",
        )
    return Reply.model_validate_json(answered.reply)


def _checked(report: Report, held: Held, *, measured: int) -> float:
    """Seconds of inference in the report; `measured`: rounds before it. Raises Unprocessable."""
    block, attempt = held.block, held.attempt
    first = block.first_round
    check_ordered(report, is_going_on=first > 0, has_questions=bool(questions_of(block)))
    timed_s = check_report(
        report,
        block=block.plan,
        next_round=first + measured,
        max_rounds=max_rounds_to_order(block.max_rounds),
        first_round=first,
    )
    if isinstance(report, AccuracyReport):
        check_labelled(report, evaluation_beside(block.versions))
    if timed_s:
        wall_s = clocks.now().since(attempt.began_at_s, attempt.began_boot)
        check_wall_clock(attempt.timed_s + timed_s, wall_s=wall_s)
    return timed_s


def _judged(report: Report, held: Held) -> Reply:
    """The answer; only a round's needs the statistics of the whole block, and none that is among the first."""
    if surely_goes_on(report, held.block.plan, max_rounds=held.block.max_rounds):
        return Reply(go_on=True)
    if not isinstance(report, RoundReport):
        return BlockJudge(held.block.plan).reply(report)
    judge = BlockJudge(held.block.plan, max_rounds=held.block.max_rounds, reports=judged_reports(held.block))
    return judge.take(report)


def _keep(report: Report, held: Held, *, place: Place, digest: str, reply: Reply, timed_s: float) -> None:
    body = report.model_dump_json()
    if held.attempt.reported_bytes + len(body) > MAX_REPORTED_BYTES:
        raise TooLarge(
            f"Attempt {held.attempt.number} has reported {held.attempt.reported_bytes:,} characters; with this "
            f"report they would be more than {MAX_REPORTED_BYTES:,}."
        )
    with transaction.atomic():
        block, attempt = _locked(report, held), held.attempt
        if not _counted(held, timed_s=timed_s, length=len(body)):
            raise Conflict(f"Attempt {attempt.number} at block {block.pk} is over.", code="stale")
        attempt.reports.create(**place._asdict(), digest=digest, body=body, reply=reply.model_dump_json())
        if isinstance(report, RoundReport):
            Block.objects.filter(pk=block.pk).update(rounds=report.round + 1)
        if reasons_in(report):
            end_failed_arms(block, report)
        if isinstance(report, DivergenceReport):
            keep_divergence(block, attempt, report)
        if isinstance(report, EndReport):
            end_attempt(block, attempt, report)


def _locked(report: Report, held: Held) -> Block:
    """The block, whose run is locked and marked as changed; read again where more than its rounds may change."""
    block = held.block
    # the statement that marks the run locks it too, before its block and attempt as everywhere
    mark_run(block.run_id)
    if isinstance(report, (EndReport, DivergenceReport)) or reasons_in(report):
        return lock_block(block.pk, run_id=block.run_id)
    return block


def _counted(held: Held, *, timed_s: float, length: int) -> bool:
    """Counts a report in its attempt, if that still holds the block: one conditional UPDATE."""
    holding = Block.objects.filter(
        pk=OuterRef("block"), state=BlockState.LEASED, attempt=OuterRef("number"), node=OuterRef("node")
    )
    attempts = Attempt.objects.filter(Exists(holding), pk=held.attempt.pk, state=AttemptState.LEASED)
    return bool(attempts.update(timed_s=F("timed_s") + timed_s, reported_bytes=F("reported_bytes") + length))
