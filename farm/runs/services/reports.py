"""Checks, stores and answers the reports of nodes. The answer says whether to measure another round."""

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
from farm.rules.judging.block_verdicts import BlockJudge, goes_on_in_any_case
from farm.rules.planning.plans import max_rounds_to_order
from farm.runs import clocks
from farm.runs.models import NO_INDEX, Arm, Attempt, Block
from farm.runs.selectors.compared_versions import find_evaluation
from farm.runs.selectors.divergences import open_questions
from farm.runs.selectors.evidence import reports_to_judge
from farm.runs.services.divergences import store_divergence
from farm.runs.services.endings import end_arms, end_attempt, stop_block
from farm.runs.services.leases import Claim, find_claim
from farm.runs.services.locks import lock_block, mark_run
from farm.runs.services.plausibility import check_accuracy, check_report, check_wall_clock, check_was_ordered
from farm.runs.states import OPEN_BLOCKS, AttemptState, BlockState, EventKind

log = logging.getLogger(__name__)
# limit, in characters, of all reports of an attempt; 16 arms with five traces of 2,000 operators take some 30 million
MAX_REPORTED_BYTES = 64_000_000
# the same refusal is logged once within this time
LOG_INTERVAL = timedelta(minutes=10)


def end_failed_arms(block: Block, report: Report) -> None:
    """End the arms that the report says have failed; with fail-fast, stop every other open block of the run too."""
    has_failed = False
    for number, reason in list_failed_arms(report):
        arm = block.arms.filter(number=number, status="").select_related("cell").first()
        if arm is not None:
            end_arms(Arm.objects.filter(pk=arm.pk), reason)
            text = f"{arm.name} ended as {reason.status}: {reason.text}"
            block.log(EventKind.CELL_ENDED, text, cell=arm.cell.name, code=reason.code)
            has_failed = True
    if has_failed and block.run.fail_fast:
        text = "Another cell of this run failed, and the matrix says `fail-fast`."
        for open_block in block.run.blocks.exclude(pk=block.pk).filter(state__in=OPEN_BLOCKS):
            open_block.run = block.run
            stop_block(open_block, Reason(code=ReasonCode.FAIL_FAST, text=text))


def list_failed_arms(report: Report) -> list[tuple[int, Reason]]:
    """List the arms that the report says have failed, by number, each with its reason.

    Only reports of a check or a round name any; the list is empty for others.
    """
    match report:
        case CheckReport(reason=Reason() as reason):
            return [(report.arm, reason)]
        case RoundReport():
            return [(sample.arm, sample.reason) for sample in report.samples if sample.reason is not None]
        case _:
            return []


class ReportKey(NamedTuple):
    """The key of a report, unique within its attempt. NO_INDEX stands for no arm or no round."""

    kind: str
    arm: int
    round: int

    @classmethod
    def of(cls, report: Report) -> "ReportKey":
        """Make the key of a report; the number of a trace stands for its round."""
        arm = getattr(report, "arm", NO_INDEX)
        number = getattr(report, "round", getattr(report, "trace_round", NO_INDEX))
        return cls(report.kind, arm, number)


class StoredReply(NamedTuple):
    """The digest of a stored report's content, and the reply to it as JSON text."""

    digest: str
    reply: str


Replies = Mapping[ReportKey, StoredReply]


def accept_report(*, node: Node, block_id: str, attempt: int, token: str, report: Report) -> Reply:
    """Store a report of the current attempt and return the reply.

    The same report again gets the same reply, even after the attempt is over. Raises Conflict if this node has no such
    attempt, if it is over or sent another report with the same key, NotAllowed for a wrong token, Unprocessable for a
    report that cannot be true or was not asked for, and TooLarge if the attempt has reported too much. A refused report
    changes nothing; only Unprocessable is logged.
    """
    claim = find_claim(node=node, block_id=block_id, attempt=attempt, token=token)

    # a node sends a report again if it got no reply
    key, digest = ReportKey.of(report), digest_json(report.model_dump(mode="json"))
    earlier = _load_replies(claim.attempt)
    stored_reply = _find_earlier_reply(earlier, claim.attempt, key, digest)
    if stored_reply is not None:
        return stored_reply

    if not claim.is_current:
        raise Conflict(f"Attempt {attempt} at block {block_id} is over and accepts no more reports.", code="stale")
    try:
        timed_s = _check_report(report, claim, measured=sum(earlier_key.kind == "round" for earlier_key in earlier))
    except Unprocessable as refusal:
        log_refused_report(node, claim.block, refusal)
        raise

    reply = _make_reply(report, claim)
    try:
        _store_report(report, claim, key=key, digest=digest, reply=reply, timed_s=timed_s)
    except IntegrityError:
        # the same report arrived twice at the same moment, and the other one was stored
        stored_reply = _find_earlier_reply(_load_replies(claim.attempt), claim.attempt, key, digest)
        if stored_reply is None:
            raise
        return stored_reply
    return reply


def log_refused_report(node: Node, block: Block, refusal: Refusal) -> None:
    """Write a refused report to the logs of run and node.

    It is not written again within LOG_INTERVAL if the node, the block and the refusal's code are the same; the
    process's own log gets a warning each time.
    """
    log.warning("Report of %s on block %s refused: %s", node.name, block.pk, refusal.detail)
    same = {"facts__node": node.pk, "facts__code": refusal.code, "at__gt": timezone.now() - LOG_INTERVAL}
    if block.events.filter(kind=EventKind.REPORT_REFUSED, **same).exists():
        return
    block.log(EventKind.REPORT_REFUSED, refusal.detail, node=node.pk, code=refusal.code)
    node.log(NodeEventKind.REFUSED, refusal.detail, code=refusal.code, block=block.pk)


def _load_replies(attempt: Attempt) -> Replies:
    rows = attempt.reports.order_by().values_list("kind", "arm", "round", "digest", "reply")
    return {ReportKey(kind, arm, number): StoredReply(digest, reply) for kind, arm, number, digest, reply in rows}


def _find_earlier_reply(earlier: Replies, attempt: Attempt, key: ReportKey, digest: str) -> Reply | None:
    """Return the reply that this report got before, if any. Raises Conflict if another report has its key."""
    stored = earlier.get(key)
    if stored is None:
        return None
    if stored.digest != digest:
        raise Conflict(
            f"Attempt {attempt.number} has sent another {key.kind} report for this place before.",
            code="contradiction",
        )
    return Reply.model_validate_json(stored.reply)


def _check_report(report: Report, claim: Claim, *, measured: int) -> float:
    """Check the report, and return its seconds of inference; `measured` counts the attempt's rounds so far."""
    block, attempt = claim.block, claim.attempt
    first = block.first_round
    check_was_ordered(report, is_continued=first > 0, has_questions=bool(open_questions(block)))
    timed_s = check_report(
        report,
        block=block.plan,
        next_round=first + measured,
        max_rounds=max_rounds_to_order(block.max_rounds),
        first_round=first,
    )
    if isinstance(report, AccuracyReport):
        check_accuracy(report, find_evaluation(block.versions))
    if timed_s:
        wall_s = clocks.now().since(attempt.began_at_s, attempt.began_boot)
        check_wall_clock(attempt.timed_s + timed_s, wall_s=wall_s)
    return timed_s


def _make_reply(report: Report, claim: Claim) -> Reply:
    """Make the answer. Only the answer to a later round needs the statistics of the whole block."""
    if goes_on_in_any_case(report, claim.block.plan, max_rounds=claim.block.max_rounds):
        return Reply(go_on=True)
    if not isinstance(report, RoundReport):
        return BlockJudge(claim.block.plan).reply(report)
    judge = BlockJudge(claim.block.plan, max_rounds=claim.block.max_rounds, reports=reports_to_judge(claim.block))
    return judge.take(report)


def _store_report(report: Report, claim: Claim, *, key: ReportKey, digest: str, reply: Reply, timed_s: float) -> None:
    body = report.model_dump_json()
    if claim.attempt.reported_bytes + len(body) > MAX_REPORTED_BYTES:
        raise TooLarge(
            f"Attempt {claim.attempt.number} has reported {claim.attempt.reported_bytes:,} characters; with this "
            f"report they would be more than {MAX_REPORTED_BYTES:,}."
        )
    with transaction.atomic():
        block, attempt = _mark_and_lock(report, claim), claim.attempt
        if not _count_in_attempt(claim, timed_s=timed_s, length=len(body)):
            raise Conflict(f"Attempt {attempt.number} at block {block.pk} is over.", code="stale")
        attempt.reports.create(**key._asdict(), digest=digest, body=body, reply=reply.model_dump_json())
        if isinstance(report, RoundReport):
            Block.objects.filter(pk=block.pk).update(rounds=report.round + 1)
        if list_failed_arms(report):
            end_failed_arms(block, report)
        if isinstance(report, DivergenceReport):
            store_divergence(block, attempt, report)
        if isinstance(report, EndReport):
            end_attempt(block, attempt, report)


def _mark_and_lock(report: Report, claim: Claim) -> Block:
    """Mark the run as changed, which locks it; lock and read the block again where more than its rounds may change."""
    block = claim.block
    # this statement also locks the run, which everywhere is locked before its block and attempt
    mark_run(block.run_id)
    if isinstance(report, (EndReport, DivergenceReport)) or list_failed_arms(report):
        return lock_block(block.pk, run_id=block.run_id)
    return block


def _count_in_attempt(claim: Claim, *, timed_s: float, length: int) -> bool:
    """Count a report in its attempt by one conditional UPDATE; return False if it no longer holds the block."""
    holding = Block.objects.filter(
        pk=OuterRef("block"), state=BlockState.LEASED, attempt=OuterRef("number"), node=OuterRef("node")
    )
    attempts = Attempt.objects.filter(Exists(holding), pk=claim.attempt.pk, state=AttemptState.LEASED)
    return bool(attempts.update(timed_s=F("timed_s") + timed_s, reported_bytes=F("reported_bytes") + length))
