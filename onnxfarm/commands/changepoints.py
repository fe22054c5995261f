"""`onnxfarm changepoints FILE.csv`: finds the level shifts of a series, by the rules that alerts use.

The file has `time,value`, a single column, or several columns with one series each; a header is optional. The first of
several columns is the time, and no series, if its header says so, if its values are no numbers, or if there is no
header and they rise from row to row. Rows are in time order. With --json, the answer is one list over all series.
"""

import csv
import dataclasses
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.rules.comparing.comparisons import MARGIN
from onnxfarm.commands.options import JsonOption
from onnxfarm.documents import dump_json_line, read_text
from onnxfarm.problems import Usage, exit_with_problem, require_extra

if TYPE_CHECKING:
    from farm.rules.comparing.changepoints import ChangePoint

TIME_NAMES = "time timestamp date datetime day at when ts t epoch commit build run index"


@dataclass(frozen=True, slots=True)
class Series:
    """A column of the file: its name, or without a header its number as text, and its values in time order."""

    name: str
    values: list[float]


@exit_with_problem()
def changepoints(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="time,value or columns of values, in time order.")],
    margin: Annotated[float, typer.Option(help="The smallest level shift to report, as a fraction.")] = MARGIN,
    is_json: JsonOption = False,
) -> None:
    """Say where a series moves to another level and stays there."""
    if not (isfinite(margin) and 0.0 <= margin < 1.0):
        raise Usage(f"The margin is {margin}: give a fraction from 0 up to 1, such as 0.02 for 2 %.")
    with require_extra("node"):
        from farm.rules.comparing import changepoints as rules
    columns, times = read_series(read_text(file), where=str(file))
    shifts = [rules.find_changepoints(column.values, min_magnitude=margin) for column in columns]
    for column, points in zip(columns, shifts, strict=True):
        print(_describe_shifts(column, points, times=times, margin=margin), file=sys.stderr if is_json else sys.stdout)
    if is_json:
        pairs = ((column, point) for column, points in zip(columns, shifts, strict=True) for point in points)
        print(dump_json_line([{"series": column.name, **dataclasses.asdict(point)} for column, point in pairs]))


def read_series(text: str, *, where: str) -> tuple[list[Series], list[str]]:
    """Parse CSV text. Return a series for each column of values, and the texts of the column of times.

    The times are empty if there is no such column, see the top of this module. `where` names the file in errors. Raises
    Usage for text without rows of values, or that is no CSV of finite numbers in time order, and for rows of different
    lengths.
    """
    if text.lstrip()[:1] in ("{", "["):
        raise Usage(f"{where} holds JSON: level shifts are found in CSV, rows of time,value in time order.")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text.rstrip()), strict=True)]
    except csv.Error as problem:
        raise Usage(f"{where} is not a CSV file ({problem}).") from problem
    if not rows:
        raise Usage(f"{where} is empty: give rows of time,value.")
    # the first row is a header if its last cell is a word, because a value would be a number
    header = rows[0] if rows[0] and rows[0][-1] and not _is_number(rows[0][-1]) else None
    body = rows[1:] if header else rows
    if not body:
        raise Usage(f"{where} has a header and no rows.")
    for place, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise Usage(f"{where}: line {place + 1} has {len(row)} columns and the first has {len(rows[0])}.")

    names = header or [str(number) for number in range(len(body[0]))]
    has_times = _starts_with_time(header, body)
    times = [row[0] for row in body] if has_times else []
    _check_order(times, where=where)
    series = []
    for column in range(int(has_times), len(names)):
        name = names[column]
        values = [_parse_value(row[column], number, name, where) for number, row in enumerate(body)]
        series.append(Series(name, values))
    return series, times


def _starts_with_time(header: Sequence[str] | None, body: Sequence[Sequence[str]]) -> bool:
    """Say whether the first column holds times: by its header, or by its values."""
    cells = [row[0] for row in body]
    if len(body[0]) < 2:
        return False
    if header and (header[0].lower() in TIME_NAMES.split() or header[0].lower().endswith("_at")):
        return True
    if not all(map(_is_number, cells)):
        return not any(map(_is_number, cells))
    return header is None and all(float(a) < float(b) for a, b in pairwise(cells))


def _check_order(times: Sequence[str], *, where: str) -> None:
    """Raise Usage if the rows are not in time order. Times that are neither numbers nor dates are not checked."""
    moments = _parse_times(times)
    for place, (before, after) in enumerate(pairwise(moments)):
        if after < before:
            raise Usage(
                f"{where}: row {place + 1} is earlier than the row before ({times[place + 1]}): sort it by time."
            )


def _parse_times(times: Sequence[str]) -> list[float]:
    """Parse times that are numbers or dates; empty if one of them is neither."""
    try:
        if all(map(_is_number, times)):
            return [float(time) for time in times]
        return [datetime.fromisoformat(time).timestamp() for time in times]
    except (ValueError, OverflowError, OSError):
        return []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _parse_value(cell: str, row: int, name: str, where: str) -> float:
    if not _is_number(cell) or not isfinite(float(cell)):
        raise Usage(f"{where}: row {row} of column {name} is {cell!r}: every value must be a finite number.")
    return float(cell)


def _describe_shifts(column: Series, points: Sequence["ChangePoint"], *, times: Sequence[str], margin: float) -> str:
    if not points:
        return f"{column.name}: no level shift of {100 * margin:.3g} % or more in {len(column.values)} rows."
    shifts = []
    for point in points:
        moment = f" ({times[point.index]})" if times else ""
        size = "from 0" if point.magnitude is None else f"{100 * point.magnitude:+.3g} %"
        shifts.append(f"{size} at row {point.index}{moment}, p = {point.p:.2g}")
    return f"{column.name}: {len(points)} level shift{'s' if len(points) > 1 else ''}: {', '.join(shifts)}."
