"""Writes and prints the results of commands: text, documents, JSON and tables."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

from farm.contract.texts import escape_line_breaks
from onnxfarm.problems import Usage

if TYPE_CHECKING:
    from farm.contract.document import Document

STDOUT = Path("-")
PLAIN_WIDTH = 160


def write_text(text: str, path: Path) -> None:
    """Write text to a file, completely or not at all. The path `-` is stdout. Raises Usage if it cannot be written."""
    if path == STDOUT:
        sys.stdout.write(text)
        return
    write_bytes(text.encode(), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file, completely or not at all; `-` is a file here. Raises Usage if it cannot be written."""
    if not path.name:
        raise Usage(f"{path} is a folder: give the path of a file.")
    try:
        draft = path.with_name(f".{path.name}.part")
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a file.") from problem


def write_document(document: "Document", path: Path | None) -> None:
    """Write a document as JSON to a file or to `-`, stdout; None: write nothing. Raises Usage."""
    if path is not None:
        write_text(document.to_json() + "\n", path)


def write_json(value: object, path: Path | None = STDOUT) -> None:
    """Write a plain value as indented JSON, to stdout by default; None: write nothing. Raises Usage."""
    if path is not None:
        write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", path)


def make_folder(path: Path, *, option: str) -> Path:
    """Make a folder unless it exists, and return its real path. `option` names it in errors. Raises Usage."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Usage(f"{option} {path} is not a folder ({problem.strerror}): give another one.") from problem
    return path.resolve()


def make_console(*, stderr: bool = False) -> Console:
    """Make a console. Without a terminal it is PLAIN_WIDTH characters wide, so that tables are not folded."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PLAIN_WIDTH)


def print_lines(*lines: str, console: Console | None = None) -> None:
    """Print lines without colours, markup or folding, to stderr unless a console is given.

    Line breaks within a line are escaped, so that a pipeline does not take a part of the line as a command.
    """
    console = console or Console(stderr=True)
    for line in lines:
        console.print(escape_line_breaks(line), highlight=False, markup=False, soft_wrap=True)


def print_pairs(pairs: Iterable[tuple[str, str]], *, console: Console) -> None:
    """Print pairs of a label and a value, one pair a line."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for label, value in pairs:
        table.add_row(label, value)
    console.print(table)


def make_table(*headers: str | Column) -> Table:
    """Make a table without borders or rows. A header that is text makes a column that folds long cells."""
    columns = (Column(header, overflow="fold") if isinstance(header, str) else header for header in headers)
    return Table(*columns, box=None, pad_edge=False, header_style="dim")
