"""Ends attempts, blocks and runs.

When an attempt ends, its block waits to be settled, goes back into the queue, or fails after too many tries. A block
that is stopped early keeps the rounds that it has, or is cancelled with its arms if it has none. A run is over once
all its blocks have ended, which reported blocks that wait to be settled have not.
"""

from collections import Counter

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.services import count_block_outcome
from farm.registry.services import remove_unused_blobs
from farm.rules.presenting.cell_counts import OPEN, CellCounts
from farm.runs.models import MAX_FAILURES, Arm, Attempt, Block, Cell, CompiledModel, Divergence, Part, Run, Trace
from farm.runs.services.hints import hint_on_commit, wake_others_on_machine
from farm.runs.states import UNSETTLED_BLOCKS, AttemptState, BlockState, DivergenceState, EventKind, RunOutcome

MAX_PARTS_AT_ONCE = 100
# statuses of cells that have a result; the result of a refused cell is its reason
ANSWERED = (CellStatus.DONE, CellStatus.REFUSED)
# how often a block is tried between two results, whether or not its attempts count as failures
MAX_ATTEMPTS = 12


def remove_old_parts() -> int:
    """Remove parts of models whose attempt is over, up to MAX_PARTS_AT_ONCE; return how many.

    The file of a part stays if an answer names it.
    """
    rows = Part.objects.exclude(attempt__state=AttemptState.LEASED).values_list("pk", "blob_id")
    old_parts = list(rows[:MAX_PARTS_AT_ONCE])
    if old_parts:
        with transaction.atomic():
            Part.objects.filter(pk__in=[pk for pk, _ in old_parts]).delete()
            remove_unused_blobs([blob for _, blob in old_parts])
    return len(old_parts)


def remove_files_of_attempt(attempt: Attempt) -> None:
    """Remove the traces and compiled models of an attempt, whatever its result. Call inside a transaction.

    Its parts of models stay until `remove_old_parts`.
    """
    for rows in (Trace.objects.filter(attempt=attempt), CompiledModel.objects.filter(attempt=attempt)):
        if blobs := list(rows.values_list("blob_id", flat=True)):
            rows.delete()
            remove_unused_blobs(blobs)


def finish_run_if_over(run: Run) -> bool:
    """Finish the run if all its blocks have ended; return False if one is open or reported, or the run had finished.

    The end is written to the run's log. Call inside the transaction that has locked the run.
    """
    if run.blocks.filter(state__in=UNSETTLED_BLOCKS).exists():
        return False
    statuses = Counter(status or OPEN for status in run.cells.order_by().values_list("status", flat=True))
    outcome, sentence = _decide_outcome(run, statuses)
    if not run.finish(outcome, sentence):
        return False
    # the log already names the person who cancelled it
    run.log(EventKind.RUN_FINISHED, f"{CellCounts(statuses).words}.", outcome=outcome)
    return True


def _decide_outcome(run: Run, statuses: Counter[str]) -> tuple[RunOutcome, str]:
    ended = (BlockState.DONE, BlockState.CANCELLED)
    stopped = run.blocks.filter(state__in=ended, reason_code=ReasonCode.CANCELLED)
    if reason := stopped.values_list("reason_text", flat=True).first():
        return RunOutcome.CANCELLED, reason
    outcome = RunOutcome.COMPLETE if statuses.keys() <= set(ANSWERED) else RunOutcome.PARTIAL
    if statuses.keys() == {CellStatus.REFUSED}:
        outcome = RunOutcome.REFUSED
    # the sentence names no verdicts: the headline does, with axis, quantity and level
    return outcome, f"{CellCounts(statuses).words}."


def end_arms(arms: QuerySet[Arm], reason: Reason) -> None:
    """End the open ones among these arms, and their cells, with the reason and its status.

    A cell ends with its own arm, not with its A/A twin. Nothing is logged.
    """
    ending = {"status": reason.status, "reason_code": reason.code, "reason_text": reason.text}
    open_arms = arms.filter(status="")
    cells = list(open_arms.filter(name=F("cell__name")).values_list("cell_id", flat=True))
    open_arms.update(**ending)
    Cell.objects.filter(pk__in=cells, status="").update(**ending)


def stop_block(block: Block, reason: Reason) -> None:
    """Stop an open block and its attempt early.

    The block is settled with the rounds that this attempt has reported. If it reported none, a continued block is done
    with its earlier rounds, and any other block is cancelled with its open arms. The run is not finished here.
    """
    attempt = block.attempts.filter(state=AttemptState.LEASED, number=block.attempt).select_related("node").first()
    if attempt is not None and attempt.reports.filter(kind="round").exists():
        _report_early(block, attempt, reason)
    elif block.first_round:
        _cancel_attempt(block, reason)
        keep_earlier_rounds(block, reason)
    elif block.cancel(reason):
        _cancel_attempt(block, reason)
        end_arms(block.arms.all(), reason)


def _report_early(block: Block, attempt: Attempt, reason: Reason) -> None:
    """Mark a leased block as reported. A continued block keeps the reason that it had before, or none."""
    attempt.end(AttemptState.REPORTED, code=reason.code, text=reason.text)
    if block.first_round:
        fail_open_questions(block, reason.text)
    block.report(block.reason if block.first_round else reason)
    if attempt.node is not None:
        wake_others_on_machine(attempt.node)
    hint_on_commit(block)


def keep_earlier_rounds(block: Block, reason: Reason) -> None:
    """Mark an open block that was to measure more rounds as done with its earlier ones. Other blocks stay unchanged.

    If the block changed, its open questions fail with the reason.
    """
    if block.keep_rounds(f"Block {block.number} keeps its {block.first_round} rounds: {reason.text}"):
        fail_open_questions(block, reason.text)


def fail_open_questions(block: Block, problem: str) -> None:
    # while a question is open, the next order would ask it instead of measuring rounds
    rows = Divergence.objects.filter(arm__block=block, state=DivergenceState.ASKED)
    rows.update(state=DivergenceState.FAILED, problem=problem, ended_at=timezone.now())


def _cancel_attempt(block: Block, reason: Reason) -> None:
    attempts = Attempt.objects.filter(block=block, state=AttemptState.LEASED)
    attempts.update(
        state=AttemptState.CANCELLED, reason_code=reason.code, reason_text=reason.text, ended_at=timezone.now()
    )


def end_attempt(block: Block, attempt: Attempt, report: EndReport) -> None:
    """End an attempt as its node's last report says. Call inside the transaction that stores it and locks the block.

    If the report names a reason, there is no result, and `give_up_attempt` queues the block again or fails it.
    Otherwise the block becomes reported and waits to be settled.
    """
    if report.reason is not None:
        # a node that leaves on purpose has not failed
        is_failure = report.reason.code != ReasonCode.CANCELLED
        give_up_attempt(block, attempt, report.reason, state=AttemptState.FAILED, is_failure=is_failure)
        return
    attempt.end(AttemptState.REPORTED)
    block.report()
    if attempt.node is not None:
        count_block_outcome(node=attempt.node, reason=None)
        wake_others_on_machine(attempt.node)
    hint_on_commit(block)


def give_up_attempt(
    block: Block, attempt: Attempt, reason: Reason, *, state: AttemptState, is_failure: bool = True
) -> bool:
    """End an attempt without a result, as `state`, remove its traces and compiled models, and queue its block again.

    After too many tries, or if the node reported a timeout, the block is not queued: a block with earlier rounds is
    done with those, and any other block fails; the run is finished if it was its last. The attempt counts as a failure
    of the block and of the node only with `is_failure`. Return False, with nothing changed, if the attempt had ended
    already.
    """
    if not attempt.end(state, code=reason.code, text=reason.text):
        return False
    remove_files_of_attempt(attempt)
    if attempt.node is not None:
        wake_others_on_machine(attempt.node)
        if is_failure:
            count_block_outcome(node=attempt.node, reason=reason)

    # decide whether the block is tried again
    block.refresh_from_db(fields=["failures", "first_round", "attempt", "state"])
    failure_count = block.failures + is_failure
    # a block that took too long takes as long the next time
    is_hopeless = state == AttemptState.FAILED and reason.code == ReasonCode.TIMEOUT
    with_result = block.attempts.filter(state=AttemptState.DONE).order_by("-number")
    last_result = with_result.values_list("number", flat=True).first() or 0
    tries = block.attempts.filter(number__gt=last_result).count()

    if not is_hopeless and failure_count < MAX_FAILURES and tries < MAX_ATTEMPTS:
        text = f"Block {block.number} goes back into the queue: {reason.text}"
        failures = F("failures") + int(is_failure)
        block.queue(EventKind.BLOCK_REQUEUED, came_from=BlockState.LEASED, text=text, failures=failures)
        hint_on_commit(block)
    elif block.first_round:
        keep_earlier_rounds(block, reason)
        finish_run_if_over(block.run)
    else:
        if failure_count >= 2:
            text = f"Tried {failure_count} times without a result; the last time: {reason.text}"
            reason = Reason(code=reason.code, text=text[:2000])
        fail_block(block, reason)
    return True


def fail_block(block: Block, reason: Reason) -> None:
    """Fail a block with its open arms, and finish the run if this was its last open block.

    A block that has ended already stays as it is.
    """
    if block.fail(reason):
        end_arms(block.arms.all(), reason)
        finish_run_if_over(block.run)
