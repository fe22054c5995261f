"""The chosen cells on the compare page: their names, their times against the base cell, and the headline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dashboard import axes
from dashboard.reading.judging import ChosenCell, PairVerdict
from farm.rules.presenting import sentences
from farm.rules.presenting.times import format_latency
from farm.rules.wording import numbers

MAX_CHOSEN = 4
CONDITIONS = ("runtime", "provider", "precision", "batch", "shapes", "threads")


@dataclass(frozen=True)
class Row:
    """A compared cell. `p50`: its latency in words, empty where it would contradict the verdict; `verdict`: the result
    against the base, None for the base itself; `pin`: the address that makes the cell the base; `without`: the address
    that removes the cell. Both are empty where the reader may not choose."""

    choice: ChosenCell
    name: str
    p50: str
    verdict: PairVerdict | None = None
    pin: str = ""
    without: str = ""


def pin_base(chosen: Sequence[ChosenCell], base: str) -> list[ChosenCell]:
    """Put the cell with the key `base` first, which makes it the base; the order stays where no cell has it."""
    return sorted(chosen, key=lambda choice: choice.key != base)


def name_cells(chosen: Sequence[ChosenCell]) -> list[str]:
    """Name the cells, in order, by the settings that differ between them. All are named by run and cell id where two
    names would be equal."""
    differing = axes.varying_axes(choice.cell for choice in chosen)
    names = [axes.name_of(choice.cell, differing) for choice in chosen]
    return names if len(set(names)) == len(names) else [f"run {choice.run_id}, {choice.cell.id}" for choice in chosen]


def describe_conditions(chosen: Sequence[ChosenCell], verdicts: Sequence[PairVerdict]) -> str:
    """Write the interval of the only verdict, then the settings that all cells share, and their node if it is one.
    Empty for fewer than two cells."""
    if not verdicts:
        return ""
    cells = [choice.cell for choice in chosen]
    differing = axes.varying_axes(cells)
    settings = axes.name_of(cells[0], [axis for name in CONDITIONS if (axis := axes.BY_NAME[name]) not in differing])
    nodes = {cell.node for cell in cells}
    interval = verdicts[0].interval if len(verdicts) == 1 else ""
    parts = [
        f"95 % interval {interval}" if interval else "",
        settings,
        f"on {cells[0].node}" if len(nodes) == 1 else "",
    ]
    return " · ".join(filter(None, parts))


def make_rows(chosen: Sequence[ChosenCell], verdicts: Sequence[PairVerdict]) -> list[Row]:
    """Make a row for each cell, the base first. All rows show processor time where any verdict rests on it.
    `verdicts`: one for each cell except the base, in order; empty for a single cell."""
    names = name_cells(chosen)
    if not verdicts:
        return [Row(choice, name, format_latency(choice.cell)) for choice, name in zip(chosen, names, strict=True)]
    by_processor = any(verdict.by_processor for verdict in verdicts)
    rows = []
    for choice, name, verdict in zip(chosen, names, [None, *verdicts], strict=True):
        shown = replace(verdict or verdicts[0], by_processor=by_processor)
        agrees = verdict is None or shown.agrees_with_times(chosen[0].cell, choice.cell)
        rows.append(
            Row(choice, name, shown.times_of(choice.cell).format_latency(choice.cell) if agrees else "", verdict)
        )
    return rows


def write_headline(chosen: Sequence[ChosenCell], verdicts: Sequence[PairVerdict]) -> str:
    """Say which cells have wrong outputs, then how the others compare with the base; empty for a single cell."""
    if not verdicts:
        return ""
    names, wrong_keys = name_cells(chosen), {key for verdict in verdicts for key in verdict.wrong}
    wrong = {name: choice.cell for name, choice in zip(names, chosen, strict=True) if choice.key in wrong_keys}
    base, *others = names
    if len(others) == 1 and not wrong and verdicts[0].change.endswith(verdicts[0].sign.word):
        return numbers.unbroken(f"{others[0]} is {verdicts[0].change} than {base}")
    findings = [
        f"{name} {_describe_verdict(verdict)}"
        for name, verdict in zip(others, verdicts, strict=True)
        if not verdict.wrong
    ]
    wrong_names = numbers.listed([*wrong], most=MAX_CHOSEN)
    parts = [sentences.describe_wrong_cells([*wrong.values()], wrong_names, measured=len(chosen))] if wrong else []
    if findings:
        parts.append(f"Against {base}: {numbers.listed(findings, most=MAX_CHOSEN)}")
    return numbers.unbroken(". ".join(parts))


def _describe_verdict(verdict: PairVerdict) -> str:
    """Describe a verdict and its size: `19 % slower`, `undecided (2 % slower)`, or the verdict alone without a size."""
    change, word = verdict.change, verdict.sign.word
    return change if change.endswith(word) else f"{word} ({change})" if change else word
