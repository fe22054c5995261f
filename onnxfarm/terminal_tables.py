"""Makes tables fit a terminal: moves constant columns into a line above, and splits tables that are too wide."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from farm.rules.presenting import tables
from farm.rules.wording.vocabulary import WRONG, sign_of, with_mark
from onnxfarm.outputs import make_table

# the style of a text by its tone; other tones have no colour
COLOURS = {"slower": "bold yellow", "faster": "cyan", "bad": "red"}
# the width to which a column may fold, and the gap between two columns
MIN_FOLDED_WIDTH, GAP = 24, 2


def print_table(table: tables.Table, *, console: Console) -> None:
    """Print a table that the farm's pages show too. A table that is wider than the console is split."""
    shown = make_table(
        *(Column(head.text, justify="right", no_wrap=True) if head.is_number else head.text for head in table.heads)
    )
    for row in table.rows:
        shown.add_row(*(Text(entry.text) for entry in row))
    for part in split_to_width(shown, width=console.width):
        console.print(part)


def make_folding_table(*headers: str) -> Table:
    """Make a table without rows, whose columns fold, except those that hold short texts, such as `runtime`."""
    short = ("cell", "runtime", "verdict", "decoding")
    return make_table(*(Column(header, no_wrap=header in short, overflow="fold") for header in headers))


def lift_constant_columns(table: Table, *headers: str) -> tuple[str, Table]:
    """Remove those of the columns under `headers` in which every row has the same text.

    Return the removed headers and texts as one line, and a table of the other columns. An empty column is removed, but
    is not in the line. A column that says in every row that outputs are wrong stays, so that each row is marked. A
    table with a single row keeps all columns.
    """
    constants: dict[str, str] = {}
    for column in table.columns if table.row_count > 1 else ():
        texts = {str(cell) for cell in column.cells}
        if column.header in headers and len(texts) == 1 and not min(texts).startswith(("fail", with_mark(WRONG))):
            constants[str(column.header)] = texts.pop()
    narrower = _select_columns(table, [column for column in table.columns if column.header not in constants])
    return ", ".join(f"{header} {text}" for header, text in constants.items() if text), narrower


def split_to_width(table: Table, *first_headers: str, width: int) -> list[Table]:
    """Split a table into tables that fit `width` characters, in the order in which to print them.

    The first always has the columns up to the first right-aligned one, or all if there is none. Of the other columns,
    those under `first_headers` get room first, in this order. The rest are in further tables, each of which repeats the
    first column, and leaves out rows without any other text. Within a table, the order of columns stays. A column that
    is too wide by itself makes its table wider than `width`.
    """
    first = next((index for index, column in enumerate(table.columns) if column.justify == "right"), len(table.columns))
    order = {header: index for index, header in enumerate(first_headers)}
    others = sorted(table.columns[first + 1 :], key=lambda column: order.get(str(column.header), len(order)))
    parts = [table.columns[: first + 1]]
    room = width - sum(map(_measure_width, parts[0]))
    for column in others:
        room -= _measure_width(column)
        if room < -GAP:
            parts.append([table.columns[0]])
            room = width - _measure_width(table.columns[0]) - _measure_width(column)
        parts[-1].append(column)
    main, *rest = (sorted(part, key=table.columns.index) for part in parts)
    return [_select_columns(table, main), *(_select_columns(table, part, is_rest=True) for part in rest)]


def _measure_width(column: Column) -> int:
    natural = max(cell_len(str(text)) for text in (column.header, *column.cells))
    return GAP + (natural if column.no_wrap else min(natural, MIN_FOLDED_WIDTH))


def _select_columns(table: Table, columns: Sequence[Column], *, is_rest: bool = False) -> Table:
    """Return a copy with only these columns. `is_rest`: leave out the caption, and rows whose other cells are empty."""
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
    """Colour a text by the tone of `key`, a verdict or state such as `slower`. Any other key gives no colour."""
    return Text(text, style=COLOURS.get(sign_of(key).tone, ""))
