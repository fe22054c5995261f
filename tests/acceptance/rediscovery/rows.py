"""Rows of the scoreboard, kept as lines of JSON as soon as they are done."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.acceptance.rediscovery.claims import Kind

QUIET_SHARE = 0.7


@dataclass
class Row:
    """What became of one claim. `holds`: whether the judge sees it here. `why`: of a miss, in the product's words.

    `core_share`: of a core that the judge's processes got; below `QUIET_SHARE` the row is run again when it can be,
    whatever it says.
    `since`, `judge_since`: the first release that has it, by us and by the judge; `is_dated` holds where both are the
    same and in the report's range. `operator`: what the change was put down to.
    """

    name: str
    kind: Kind
    processor: str
    holds: bool = False
    judge_ratio: float | None = None
    judge_alike: str = ""
    judge_since: str = ""
    judge_ratios: dict[str, float] = field(default_factory=dict)
    judge_us: float | None = None
    core_share: float = 0.0
    verdict: str = ""
    verdict_from: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    since: str = ""
    is_dated: bool = False
    operator: str = ""
    is_explained: bool = False
    minutes: float = 0.0
    said: str = ""
    why: str = ""

    @property
    def is_quiet(self) -> bool:
        """Whether the machine was quiet enough for the row to stay."""
        return self.core_share >= QUIET_SHARE

    @property
    def is_found(self) -> bool:
        """Whether a bench of the two reported releases said what the report says, and the judge agrees."""
        return self.holds and self.verdict == ("slower" if self.kind is Kind.OWN else self.kind.value)

    @property
    def is_whole(self) -> bool:
        """Found, dated and explained."""
        return self.is_found and self.is_dated and self.is_explained

    @property
    def is_silent(self) -> bool:
        """Of an unchanged pair: nothing was called."""
        return self.verdict in ("equal", "undecided")


class Ledger:
    """A file of rows. The last row of a claim counts; a line that was cut off does not."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def rows(self) -> dict[str, Row]:
        """The rows by claim."""
        text = self._path.read_text() if self._path.exists() else ""
        whole = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return {line["name"]: Row(**{**line, "kind": Kind(line["kind"])}) for line in whole}

    def add(self, row: Row) -> None:
        """Append a row."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")
            file.flush()
            os.fsync(file.fileno())
