"""The first words of a run's page, and how sentences are split into a headline and what it rests on."""

import re
from collections.abc import Sequence
from dataclasses import replace

from dashboard.reading.cell import describe_placement
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting import answers, sentences
from farm.rules.presenting.answers import Answer
from farm.rules.presenting.cell_counts import list_planned_cells
from farm.rules.presenting.headlines import name_cells, rank_results
from farm.rules.wording import numbers

BRACKETED = re.compile(r" \(([^()]*)\)")
# the headline of an open run without a verdict, by what goes on in it
HEADLINES = {
    "measuring": "Measuring {model}",
    "queued": "Queued: waiting for a node",
    "preparing": "Preparing {model}",
    "settling": "Settling the results of {model}",
}


def make_run_opening(document: Document, *, model: str, planned: int, ended: int, activity: str) -> Answer:
    """Write the headline of a run's page, its cause and the rest.

    `activity`: the state of an open run, a key of HEADLINES; empty once it has ended. Before there are comparisons it
    is the headline, and the next line says which outputs are wrong. `planned` and `ended` are numbers of cells.
    """
    if activity and not document.comparisons:
        headline = HEADLINES.get(activity, "Finishing {model}").format(model=model)
        cells = {cell.id: cell for cell in document.cells}
        return Answer(headline, sentences.describe_wrong(rank_results([], cells), cells))
    answer = answers.make_answer(document)
    if not activity:
        return answer
    so_far = f"So far: {ended} of {numbers.counted(planned, 'cell')} have ended."
    return replace(answer, rest=f"{answer.rest} {so_far}".strip())


def list_warnings(cells: Sequence[Cell]) -> list[str]:
    """Say in one sentence which cells ran on other providers than requested; empty where none did. Wrong outputs are
    in the headline already, and A/A twins do not count."""
    own = list_planned_cells(cells)
    misplaced = [cell for cell in own if not describe_placement(cell).is_as_asked]
    if not misplaced:
        return []
    counted = numbers.counted(len(misplaced), "cell")
    return [f"Not as asked: {counted} ran on other providers than requested ({name_cells(misplaced, own)})."]


def split_first_sentence(text: str) -> tuple[str, str]:
    """Split a text into its first sentence and the rest, with numbers and their units kept on one line."""
    answer = Answer.from_sentences(numbers.unbroken(text))
    return answer.headline, answer.rest


def split_brackets(sentence: str) -> tuple[str, list[str]]:
    """Split a sentence into itself without its brackets, and the texts that stood in them."""
    return BRACKETED.sub("", sentence), BRACKETED.findall(sentence)
