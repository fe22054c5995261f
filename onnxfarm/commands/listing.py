"""Lists of what a farm has: a table for people, or the farm's own JSON."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from onnxfarm.outputs import make_console, make_table, print_lines, write_plain
from onnxfarm.remote.client import Answered

Row = TypeVar("Row")


def show_rows(
    found: Answered[list[Row]],
    heads: Sequence[str],
    cells: Callable[[Row], Sequence[str]],
    *,
    as_json: bool,
    none: str = "",
) -> None:
    """Print the rows as a table under `heads`, or the farm's JSON; print `none` where there are no rows.

    `cells` makes the texts of a row.
    """
    console = make_console()
    if as_json:
        write_plain(found.plain)
    elif not found.shape and none:
        print_lines(none, console=console)
    else:
        table = make_table(*heads)
        for row in found.shape:
            table.add_row(*cells(row))
        console.print(table)


def format_minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"
