"""How a block stops before its end: it is cancelled or fails with its arms, or goes back to what it had measured."""

from django.db.models import F, QuerySet
from django.utils import timezone

from farm.contract.reasons import Reason
from farm.runs.models import Arm, Attempt, Block, Cell, Divergence
from farm.runs.states import AttemptState, DivergenceState


def end_arms(arms: QuerySet[Arm], reason: Reason) -> None:
    """Gives open arms, and the cells they stand for, their status and reason."""
    ending = {"status": reason.status, "reason_code": reason.code, "reason_text": reason.text}
    open_arms = arms.filter(status="")
    cells = list(open_arms.filter(name=F("cell__name")).values_list("cell_id", flat=True))
    open_arms.update(**ending)
    Cell.objects.filter(pk__in=cells, status="").update(**ending)


def stop_block(block: Block, reason: Reason) -> None:
    """Cancels an open block with its attempt; one that goes on keeps what it had."""
    if block.first_round:
        _end_attempt(block, reason)
        keep_earlier(block, reason)
    elif block.cancel(reason):
        _end_attempt(block, reason)
        end_arms(block.arms.all(), reason)


def keep_earlier(block: Block, reason: Reason) -> None:
    """Ends a block that goes on with the rounds it had before, unless it had ended."""
    if block.keep_rounds(f"Block {block.number} keeps its {block.first_round} rounds: {reason.text}"):
        close_questions(block, reason.text)


def close_questions(block: Block, problem: str) -> None:
    """Ends the questions that nobody will answer: one left open would be asked in place of the next rounds."""
    rows = Divergence.objects.filter(arm__block=block, state=DivergenceState.ASKED)
    rows.update(state=DivergenceState.FAILED, problem=problem, ended_at=timezone.now())


def _end_attempt(block: Block, reason: Reason) -> None:
    held = Attempt.objects.filter(block=block, state=AttemptState.LEASED)
    held.update(state=AttemptState.CANCELLED, reason_code=reason.code, reason_text=reason.text, ended_at=timezone.now())
