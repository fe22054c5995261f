"""How an attempt ends: the block waits to be settled, goes back into the queue, or has failed too often."""

from django.db.models import F

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.services import note_block_end
from farm.runs.models import MAX_FAILURES, Attempt, Block
from farm.runs.services.bell import ring_on_commit
from farm.runs.services.cleanup import clear_uncounted
from farm.runs.services.completion import finish_run_if_over
from farm.runs.services.stops import end_arms, keep_earlier
from farm.runs.states import AttemptState, EventKind

# however an attempt ends, a block is tried at most so often between two results
MAX_ATTEMPTS = 12


def end_attempt(block: Block, attempt: Attempt, report: EndReport) -> None:
    """The node's last word. Call inside the transaction that keeps the report, with the block locked."""
    if report.reason is not None:
        # a node that leaves on purpose is nobody's failure
        is_failure = report.reason.code != ReasonCode.CANCELLED
        give_up_attempt(block, attempt, report.reason, state=AttemptState.FAILED, is_failure=is_failure)
        return
    attempt.end(AttemptState.REPORTED)
    block.report()
    if attempt.node is not None:
        note_block_end(node=attempt.node, reason=None)
    ring_on_commit(block)


def give_up_attempt(
    block: Block, attempt: Attempt, reason: Reason, *, state: AttemptState, is_failure: bool = True
) -> bool:
    """Ends an attempt without a result: queued again, or, after MAX_FAILURES, failed with the reason.

    A block that was done before and only measured more rounds keeps what it had. False: the attempt had ended already.
    """
    if not attempt.end(state, code=reason.code, text=reason.text):
        return False
    clear_uncounted(attempt)
    if attempt.node is not None and is_failure:
        note_block_end(node=attempt.node, reason=reason)
    block.refresh_from_db(fields=["failures", "first_round", "attempt", "state"])
    # what took too long on a node takes as long the next time
    is_hopeless = state == AttemptState.FAILED and reason.code == ReasonCode.TIMEOUT
    is_last = is_hopeless or block.failures + is_failure >= MAX_FAILURES or _tries_since_result(block) >= MAX_ATTEMPTS
    if not is_last:
        text = f"Block {block.number} goes back into the queue: {reason.text}"
        block.queue(EventKind.BLOCK_REQUEUED, text=text, failures=F("failures") + int(is_failure))
        ring_on_commit(block)
    elif block.first_round:
        keep_earlier(block, reason)
        finish_run_if_over(block.run)
    else:
        fail_block(block, _final(reason, block.failures + is_failure))
    return True


def fail_block(block: Block, reason: Reason) -> None:
    """Fails a block with its open arms, and ends the run when it was the last."""
    if block.fail(reason):
        end_arms(block.arms.all(), reason)
        finish_run_if_over(block.run)


def _tries_since_result(block: Block) -> int:
    done = block.attempts.filter(state=AttemptState.DONE).order_by("-number").values_list("number", flat=True).first()
    return block.attempts.filter(number__gt=done or 0).count()


def _final(reason: Reason, failures: int) -> Reason:
    if failures < 2:
        return reason
    text = f"Tried {failures} times without a result; the last time: {reason.text}"
    return Reason(code=reason.code, text=text[:2000])
