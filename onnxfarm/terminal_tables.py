"""Makes tables fit a terminal: lifts constant columns into a line above, and splits tables that are too wide."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from farm.rules.presenting import tables
from farm.rules.wording.vocabulary import WRONG, mark_word, sign_of
from onnxfarm.outputs import make_table

# by the tone of a word
COLOURS = {"slower": "bold yellow", "faster": "cyan", "bad": "red"}
# the minimum width of a column that may fold, and the gap between two columns
FOLDED, GAP = 24, 2


def print_table(table: tables.Table, *, console: Console) -> None:
    """Print a table that pages show too, in parts where it is too wide."""
    heads = [Column(head.text, justify="right", no_wrap=True) if head.is_number else head.text for head in table.heads]
    shown = make_table(*heads)
    for row in table.rows:
        shown.add_row(*(Text(entry.text) for entry in row))
    for part in split_to_width(shown, width=console.width):
        console.print(part)


def make_folding_table(*heads: str) -> Table:
    """Make a table of columns that fold, but for those whose texts are short."""
    whole = ("cell", "runtime", "verdict", "decoding")
    return make_table(*(Column(head, no_wrap=head in whole, overflow="fold") for head in heads))


def lift_constant_columns(table: Table, *heads: str) -> tuple[str, Table]:
    """Remove the columns under `heads` in which every row has the same text.

    Return their heads and texts as one line, and the table without them. A column that says that all outputs are wrong
    stays, and so does every column of a table with a single row.
    """
    texts = {column.header: {str(cell) for cell in column.cells} for column in table.columns if column.header in heads}
    # wrong outputs are marked in every row
    same = {
        head: values.pop()
        for head, values in texts.items()
        if table.row_count > 1 and len(values) == 1 and not min(values).startswith(("fail", mark_word(WRONG)))
    }
    narrower = _select_columns(table, [column for column in table.columns if column.header not in same])
    return ", ".join(f"{head} {value}" for head, value in same.items() if value), narrower


def split_to_width(table: Table, *first_heads: str, width: int) -> list[Table]:
    """Split a table into parts that are no wider than the terminal.

    The first part has the columns up to the first figures, then those under `first_heads`, in this order, and others as
    far as there is room. All other columns stand in further parts, each of which begins with the first column again.
    """
    first = next((place for place, column in enumerate(table.columns) if column.justify == "right"), len(table.columns))
    order = {head: place for place, head in enumerate(first_heads)}
    others = sorted(table.columns[first + 1 :], key=lambda column: order.get(str(column.header), len(first_heads)))
    parts = [table.columns[: first + 1]]
    room = width - sum(map(_measure_width, parts[0]))
    for column in others:
        room -= _measure_width(column)
        if room < -GAP:
            parts.append([table.columns[0]])
            room = width - _measure_width(table.columns[0]) - _measure_width(column)
        parts[-1].append(column)
    whole, *further = (sorted(part, key=table.columns.index) for part in parts)
    return [_select_columns(table, whole), *(_select_columns(table, part, is_rest=True) for part in further)]


def _measure_width(column: Column) -> int:
    natural = max(cell_len(str(text)) for text in (column.header, *column.cells))
    return GAP + (natural if column.no_wrap else min(natural, FOLDED))


def _select_columns(table: Table, columns: Sequence[Column], *, is_rest: bool = False) -> Table:
    """Return a table with only these columns. `is_rest`: it gets no caption, and no rows without figures."""
    shown = make_table(
        *(
            Column(column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
            for column in columns
        )
    )
    shown.caption = None if is_rest else table.caption
    for row in zip(*(column.cells for column in columns), strict=True):
        if not is_rest or any(map(str, row[1:])):
            shown.add_row(*row)
    return shown


def colour_text(text: str, key: str) -> Text:
    return Text(text, style=COLOURS.get(sign_of(key).tone, ""))
