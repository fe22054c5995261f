"""running → finished, once no block is open."""

from collections import Counter

from django.db import transaction
from django.db.models import Count

from farm.contract.reasons import CellStatus
from farm.rules.wording.vocabulary import CHANGES
from farm.runs.models import Run
from farm.runs.services.locks import lock_run
from farm.runs.states import OPEN_BLOCKS, BlockState, EventKind, RunOutcome

# refused is an answer with a reason, like done; anything else is a planned cell without a result. Where nothing but
# refusals came out, nothing was measured, which is not complete either.
ANSWERED = (CellStatus.DONE, CellStatus.REFUSED)


def finish_run_if_over(run: Run) -> bool:
    """Finishes the run when all its blocks have ended; False while it goes on or when it had finished."""
    with transaction.atomic(savepoint=False):
        if not finish_locked_run_if_over(lock_run(run.pk)):
            return False
    run.refresh_from_db()
    return True


def finish_locked_run_if_over(run: Run) -> bool:
    """The same for a run that the open transaction has read and locked."""
    if run.blocks.filter(state__in=OPEN_BLOCKS).exists():
        return False
    outcome, sentence = _outcome(run)
    if not run.finish(outcome, sentence):
        return False
    run.log(EventKind.RUN_FINISHED, sentence, outcome=outcome)
    return True


def _outcome(run: Run) -> tuple[RunOutcome, str]:
    statuses = Counter(run.cells.order_by("number").values_list("status", flat=True))
    unanswered = sum(count for status, count in statuses.items() if status not in ANSWERED)
    is_complete = not unanswered and statuses[CellStatus.DONE] > 0
    outcome = RunOutcome.COMPLETE if is_complete else RunOutcome.PARTIAL
    if unanswered and run.blocks.filter(state=BlockState.CANCELLED).count() == run.blocks.count():
        outcome = RunOutcome.CANCELLED
    return outcome, f"{_cells_in_words(statuses)}{_verdicts_in_words(run)}."


def _cells_in_words(statuses: Counter[str]) -> str:
    total = statuses.total()
    others = ", ".join(f"{count} {status or 'open'}" for status, count in statuses.items() if status != CellStatus.DONE)
    return f"{statuses[CellStatus.DONE]} of {total} cells done" + (f", {others}" if others else "")


def _verdicts_in_words(run: Run) -> str:
    verdicts = dict(run.comparisons.exclude(axis="twin").values_list("verdict").annotate(Count("pk")))
    words = [f"{verdicts[verdict]} {verdict}" for verdict in (*CHANGES, "undecided") if verdict in verdicts]
    return f"; {', '.join(words)}" if words else ""
