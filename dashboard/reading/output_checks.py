"""What a cell's outputs were compared with beside the reference: other engines, no optimisations, rows, repeats."""

from collections.abc import Sequence

from dashboard import axes
from dashboard.figures.figure import Address
from farm.contract.document_cells import Cell, EngineParity
from farm.rules.presenting.tables import Entry, Head, Table
from farm.rules.quality.parity import LEVELS
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import Sign, sign_of

HEADS = (Head("Against"), Head("Verdict"), Head("largest difference", is_number=True), Head("In words", is_text=True))
DIFFERS = Sign("≠", "differs", "warn")

Line = tuple[Entry, ...]


def beside(cells: Sequence[Cell], cell: Cell, address: Address) -> Table:
    """One line a comparison, those of this cell first; empty of a cell that was not checked."""
    rows = [*_own(cell), *_engines(cells, cell, address)]
    return Table("beside", "Outputs against other engines and settings", HEADS, rows)


def _own(cell: Cell) -> list[Line]:
    if cell.is_repeatable is None:
        return []
    return [_levels(cell), _repeat(cell), _row(cell), _precision(cell)]


def _levels(cell: Cell) -> Line:
    unoptimised = cell.unoptimised
    name = "its own runtime without optimisations"
    if unoptimised is None:
        why = "checked on the CPU provider only, where optimisations are on and a second session is cheap"
        return _line(name, sign_of("not measured"), None, why)
    largest = max((one.max_abs for one in unoptimised.outputs if one.max_abs is not None), default=None)
    return _line(name, _sign(unoptimised.verdict), largest, unoptimised.text)


def _repeat(cell: Cell) -> Line:
    sentence = "The same input twice gives the same bits." if cell.is_repeatable else "The same input twice differs."
    return _line("the same input again", sign_of("pass") if cell.is_repeatable else DIFFERS, None, sentence)


def _row(cell: Cell) -> Line:
    name, largest = "a row of the batch alone", cell.batch_row_max_abs
    if largest is None:
        return _line(name, sign_of("not measured"), None, "needs a dynamic batch, and more than one row in it")
    is_same = largest <= LEVELS.atol
    how = "is what it is alone" if is_same else "depends on the other rows of its batch"
    return _line(name, sign_of("pass") if is_same else DIFFERS, largest, f"A row {how}, by atol {LEVELS.atol:g}.")


def _precision(cell: Cell) -> Line:
    told = cell.executed_precision
    sentence = f"The provider says it executes {told}." if told else "The provider reports no precision."
    sign = Sign("·", "told" if told else "not reported", "quiet")
    differs = bool(told) and told != cell.precision
    return _line(f"the precision asked for, {cell.precision}", DIFFERS if differs else sign, None, sentence)


def _engines(cells: Sequence[Cell], cell: Cell, address: Address) -> list[Line]:
    """This cell against earlier ones of its block, and later ones against this."""
    block = [one for one in cells if one.block == cell.block]
    along = axes.varying(block)
    by_id = {one.id: one for one in block}
    pairs = [(by_id[pair.cell], pair) for pair in cell.engines if pair.cell in by_id]
    pairs += [(one, pair) for one in block for pair in one.engines if pair.cell == cell.id and one.id != cell.id]
    # what differs first
    ranked = sorted(pairs, key=lambda each: each[1].verdict != "fail")
    return [_engine(one, pair, axes.name_of(one, along), address(one.id)) for one, pair in ranked]


def _engine(other: Cell, pair: EngineParity, name: str, href: str) -> Line:
    largest = max((one.max_abs for one in pair.outputs if one.max_abs is not None), default=None)
    sign = _sign(pair.verdict)
    soft = "A/A twin" if other.twin_of else titles.runtime(other.runtime)
    return (
        Entry(name, href=href, soft="" if soft in name else soft),
        Entry(sign=sign, value=sign.word),
        Entry("" if largest is None else numbers.scientific(largest), largest),
        Entry(pair.text),
    )


def _sign(verdict: str) -> Sign:
    return DIFFERS if verdict == "fail" else sign_of(verdict.replace("_", " "))


def _line(name: str, sign: Sign, largest: float | None, sentence: str) -> Line:
    shown = "" if largest is None else numbers.scientific(largest)
    return (Entry(name), Entry(sign=sign, value=sign.word), Entry(shown, largest), Entry(sentence))
