"""Measured cells of every run that somebody may see, by words: what is chosen from when cells are compared."""

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q

from farm.accounts.selectors import Anyone
from farm.contract.numbers import is_row_number
from farm.contract.reasons import CellStatus
from farm.runs.models import Arm, Run

MOST: Final = 50
MOST_WORDS: Final = 8
# what a number is of, where the word before it says so
NUMBERS: Final = {
    "run": "block__run",
    "version": "block__run__version__number",
    "batch": "cell__batch",
    "threads": "cell__threads",
}
TEXTS: Final = ("runtime", "provider", "precision", "hardware", "run__version__model__name")


@dataclass(frozen=True)
class MeasuredCell:
    """A cell by its run and the name it has there, with what tells it from others."""

    run_id: int
    name: str
    model: str
    version: int
    node: str
    runtime: str
    provider: str
    precision: str
    batch: int | None
    threads: int | None


def cells_matching(user: Anyone, words: str) -> list[MeasuredCell]:
    """Cells that have all of the words in model, runtime, provider, precision, hardware or node, or as a number of
    their run, version, batch or threads (`batch 8`: of that alone). The newest run first; one more than MOST where
    there are more."""
    rows = Arm.objects.filter(status=CellStatus.DONE, twin_of=None, block__run__in=Run.objects.visible_to(user))
    typed = words.lower().split()[:MOST_WORDS]
    for before, word in zip(["", *typed], typed, strict=False):
        if word not in NUMBERS:
            rows = rows.filter(_says(word, NUMBERS.get(before)))
    own = ("runtime", "provider", "precision", "batch", "threads")
    found = rows.order_by("-block__run_id", "number").values_list(
        "block__run_id", "name", "block__run__version__model__name", "block__run__version__number",
        "block__node__name", *(f"cell__{one}" for one in own),
    )  # fmt: skip
    return [
        MeasuredCell(run_id, name, model, version, node or "", *rest)
        for run_id, name, model, version, node, *rest in found[: MOST + 1]
    ]


def _says(word: str, field: str | None) -> Q:
    """`field`: what the word is a number of; None where nothing before it says so."""
    if is_row_number(word):
        fields = [field] if field else NUMBERS.values()
        return reduce(or_, (Q(**{one: int(word)}) for one in fields))
    said = Q(name=word) | Q(block__node__name__icontains=word)
    return said | reduce(or_, (Q(**{f"cell__{one}__icontains": word}) for one in TEXTS))
