"""Prints lists from a farm: as a table, or as the farm's own JSON."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from onnxfarm.outputs import make_console, make_table, print_lines, write_json
from onnxfarm.remote.client import ApiAnswer

Row = TypeVar("Row")


def show_rows(
    answer: ApiAnswer[list[Row]],
    headers: Sequence[str],
    format_row: Callable[[Row], Sequence[str]],
    *,
    as_json: bool,
    none: str = "",
) -> None:
    """Print a farm's list, in its order, to stdout: as a table under `headers`, or as JSON.

    `format_row` returns the cells of a row. `none`: the sentence to print in place of an empty table; if it is empty
    too, the headers are printed alone.
    """
    console = make_console()
    if as_json:
        write_json(answer.json)
    elif not answer.parsed and none:
        print_lines(none, console=console)
    else:
        table = make_table(*headers)
        for row in answer.parsed:
            table.add_row(*format_row(row))
        console.print(table)


def format_minute(moment: datetime) -> str:
    """Format as `2026-11-27 23:57` in the moment's own zone, without converting it."""
    return f"{moment:%Y-%m-%d %H:%M}"
