"""The file that a long measurement goes on from where it ended: one line a piece that was measured."""

import json
import os
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Ledger:
    """Measured lines of JSON, appended and never changed. The first one says what they were measured with.

    A line that was cut off, because the process ended while it wrote, is taken away before the next one is appended.
    """

    def __init__(self, path: Path, *, head: Line) -> None:
        self._path = path
        if not path.exists():
            path.write_text(json.dumps(head) + "\n")
        known = json.loads(path.read_text().splitlines()[0])
        if known != head:
            raise SystemExit(f"{path} was begun with {known}, and this call is {head}: give another file.")

    def lines(self) -> list[Line]:
        """Those so far, in the order in which they were measured; a line that was cut off does not count."""
        rows = self._path.read_text().splitlines(keepends=True)[1:]
        return [json.loads(row) for row in rows if row.endswith("\n")]

    def add(self, *lines: Line) -> None:
        whole = self._path.read_text().rpartition("\n")[0] + "\n"
        with self._path.open("r+") as file:
            file.truncate(len(whole.encode()))
            file.seek(0, os.SEEK_END)
            file.write("".join(json.dumps(line) + "\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
