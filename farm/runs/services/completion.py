"""running → finished, once no block is open."""

from collections import Counter

from django.db.models import Count

from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.wording.vocabulary import CHANGES
from farm.runs.models import Run
from farm.runs.states import UNSETTLED_BLOCKS, BlockState, EventKind, RunOutcome

# refused is an answer with a reason, like done; anything else is a planned cell without a result. Where nothing but
# refusals came out, nothing was measured, which is not complete either.
ANSWERED = (CellStatus.DONE, CellStatus.REFUSED)


def finish_run_if_over(run: Run) -> bool:
    """Finishes the run when all its blocks have ended; False while it goes on or when it had finished.

    Call inside the transaction that has locked the run.
    """
    if run.blocks.filter(state__in=UNSETTLED_BLOCKS).exists():
        return False
    outcome, sentence = _outcome(run)
    if not run.finish(outcome, sentence):
        return False
    run.log(EventKind.RUN_FINISHED, sentence, outcome=outcome)
    return True


def _outcome(run: Run) -> tuple[RunOutcome, str]:
    stopped = run.blocks.filter(state=BlockState.CANCELLED, reason_code=ReasonCode.CANCELLED)
    if by := stopped.values_list("reason_text", flat=True).first():
        return RunOutcome.CANCELLED, by
    statuses = Counter(run.cells.order_by("number").values_list("status", flat=True))
    unanswered = sum(count for status, count in statuses.items() if status not in ANSWERED)
    is_complete = not unanswered and statuses[CellStatus.DONE] > 0
    outcome = RunOutcome.COMPLETE if is_complete else RunOutcome.PARTIAL
    return outcome, f"{_cells_in_words(statuses)}{_verdicts_in_words(run)}."


def _cells_in_words(statuses: Counter[str]) -> str:
    total = statuses.total()
    others = ", ".join(f"{count} {status or 'open'}" for status, count in statuses.items() if status != CellStatus.DONE)
    return f"{statuses[CellStatus.DONE]} of {total} cells done" + (f", {others}" if others else "")


def _verdicts_in_words(run: Run) -> str:
    verdicts = dict(run.comparisons.exclude(axis="twin").values_list("verdict").annotate(Count("pk")))
    words = [f"{verdicts[verdict]} {verdict}" for verdict in (*CHANGES, "undecided") if verdict in verdicts]
    return f"; {', '.join(words)}" if words else ""
