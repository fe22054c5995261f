"""The headline of a run's page, its warnings, and functions that split sentences into a headline and its details."""

import re
from collections.abc import Sequence

from dashboard.reading.cell import describe_placement
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting import answers, sentences
from farm.rules.presenting.answers import Answer
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import name_cells, rank_results
from farm.rules.wording import numbers

BRACKETED = re.compile(r" \(([^()]*)\)")
# the headline of an open run without a verdict, by the run's state
HEADLINES = {
    "measuring": "Measuring {model}",
    "queued": "Queued: waiting for a node",
    "preparing": "Preparing {model}",
    "settling": "Settling the results of {model}",
}


def make_run_opening(document: Document, *, model: str, activity: str) -> Answer:
    """Write the headline of a run's page, its cause and the rest.

    `activity`: the state of an open run, mostly a key of HEADLINES; empty once the run has ended. Until there are
    comparisons the headline says this state, and the next line says which outputs are wrong.
    """
    if activity and not document.comparisons:
        headline = HEADLINES.get(activity, "Finishing {model}").format(model=model)
        cells = {cell.id: cell for cell in document.cells}
        return Answer(headline, sentences.describe_wrong(rank_results([], cells), cells))
    return answers.make_answer(document)


def list_warnings(cells: Sequence[Cell]) -> list[str]:
    """Return a list with a single sentence that names the cells which ran on other providers than requested; empty
    where none did. A/A twins do not count. Wrong outputs are not repeated here, since the headline names them."""
    own = list_planned_cells(cells)
    misplaced = [cell for cell in own if describe_placement(cell).sentence]
    if not misplaced:
        return []
    counted = numbers.counted(len(misplaced), "cell")
    return [f"Not as asked: {counted} ran on other providers than requested ({name_cells(misplaced, own)})."]


def split_first_sentence(text: str) -> tuple[str, str]:
    """Split a text into its first sentence and the rest. Spaces between numbers and units become non-breaking."""
    answer = Answer.from_sentences(numbers.unbroken(text))
    return answer.headline, answer.rest


def split_brackets(sentence: str) -> tuple[str, list[str]]:
    """Return the sentence without its parentheses, and the list of the texts inside them, in order."""
    return BRACKETED.sub("", sentence), BRACKETED.findall(sentence)
