"""The first words of a run's page, and what must be known before its numbers."""

from collections.abc import Sequence

from dashboard.reading import cell as reading
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting import sentences
from farm.rules.presenting.headlines import named
from farm.rules.wording import numbers


def split(text: str) -> tuple[str, str]:
    """The first sentence, and the rest; numbers stay beside their units."""
    whole = numbers.unbroken(text)
    first, _, rest = whole.partition(". ")
    return (f"{first}.", rest) if rest else (whole, "")


# an open run without a verdict opens with what goes on in it
OPENINGS = {
    "measuring": "Measuring {model}",
    "queued": "Queued: {model} waits for a node",
    "preparing": "Preparing {model}",
    "settling": "Settling the results of {model}",
}


def opening(document: Document, *, model: str, planned: int, ended: int, activity: str) -> tuple[str, str]:
    """Headline and what follows it. `activity`: what goes on in an open run, which opens with it until there is a
    verdict; how far it is stands below, with the time that is left. Empty once it has ended."""
    if not activity:
        return split(document.sentence)
    if document.comparisons:
        first, rest = split(document.sentence)
        return first, f"{rest} So far: {ended} of {numbers.counted(planned, 'cell')} have ended.".strip()
    return OPENINGS.get(activity, "Finishing {model}").format(model=model), sentences.wrong_outputs(document)


def warnings(cells: Sequence[Cell]) -> list[str]:
    """Differences between what was asked and what ran, said before any number; wrong outputs the headline says."""
    cells = [cell for cell in cells if cell.twin_of is None]
    elsewhere = [cell for cell in cells if not reading.placement(cell).is_as_asked]
    if not elsewhere:
        return []
    ran = numbers.counted(len(elsewhere), "cell")
    return [f"Not as asked: {ran} ran on other providers than requested ({named(elsewhere, cells)})."]
