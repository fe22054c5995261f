"""A database that an older commit filled: migrated, it says of its runs and alerts what that commit said.

`make.py` filled it and recorded what the code of then said. What was meant to change since stands in LATER_KEY and
MEANT, with its reason; everything else has to be there line by line.
"""

import csv
import difflib
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.postgres import Cluster

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# a key that came later says nothing of a document of before, or what it measured without saying so
LATER_KEY = re.compile(r'^ +"(\w+": (null|0|""|\[\]|\{\})|call": "bound"|uploaded": "fp32"),?$')
OF_API = re.compile(r"/api/v1/(alerts|watches|runs/\d+(/events)?$)")
# line of a page then, the same line now, why
MEANT: Final[tuple[tuple[str, str, str], ...]] = (
    (r"against FP32", "against the upload", "an upload may be of any numbers"),
    (
        r"^Whiskers: 95 % interval. Grey band: the margin within which a change is called equal.$",
        "Logarithmic axis. Whiskers: 95 % interval. Slower or faster: the whisker is clear of 0 and the point beyond "
        "the grey band. Equal: even the 97.5 % interval lies in it.",
        "what is called equal has a wider interval than the one that is drawn",
    ),
    (
        r"(Against FP32 \(\w+\): \S+ points \(\S+ to \S+) points; "
        r"([0-9]+ samples only \w+ got right, [0-9]+ only this cell)\)",
        r"\1); \2",
        "an accuracy metric says its own difference",
    ),
    (
        r"^p50 of the thread's own time, without the turns that other programs took$",
        "the thread's own time, without the turns of other programs: means of 20 ms, so that it may pass the p50",
        "it may be above the p50, and says why",
    ),
    (
        r"^Line: the median of all launches, p50\. Band",
        "Line: the median of all launches. Band",
        "it may be of processor time",
    ),
)
# page, lines with figures that are gone from it, why
GONE: Final[tuple[tuple[str, str, str], ...]] = (
    (r"/runs/\d/.*", r"runs (encoder|watched) \(|explains .* of (it|the)|^Not right: ", "one rule says what leads"),
    (
        r"/models/\d/",
        r"^(2 cells of encoder measured.*|\S+ runs .*|.* runs \w+ \(.*|run \d)$",
        "it opens with how fast it is",
    ),
    (r"/", r"^\d open alert|^\d nodes? ", "it opens with what needs the reader"),
    (r"/models/\d/", r"^\d more runs? by the farm \(", "runs for searches for settings are among them"),
    (r"/runs/\d/.*", r"^Started by watch ", "it says which run confirmed the change"),
    (r"/runs/2/.*", r"^2 cells of encoder measured, none to compare\.$", "an A/A copy is no cell of its own"),
    (r"/runs/[16]/", r".*", "its comparisons are along the axis that leads now; `?along=` has the others"),
    (
        r"/(models|watches)/\d/",
        r", 1 thread, on bench-1$|^95 %, 8 rounds$",
        "a row says what varies, the rest on hover",
    ),
    (r"/watches/\d/", r"^ONNX .* \(.*\)\.$|^watched \(|: 2 nodes, ", "heading, rounds and causes are short"),
    (r"/models/\d/", r"^onnxfarm watch add upgrades ", "no watch is offered where there is one"),
    (r"/models/1/", r"^(Most|Left out): ", "best settings pass, and stand once"),
    (r"/models/1/", r"^0\.01$", "the interval stands beside its time, with a ±"),
    (r"/runs/\d/cells/c\d/", r"^(bench-1|2|24\.0 GB|Linux 6\.1|x86_64)$", "the node stands above the folded metrics"),
    (
        r"/(models/2|runs/3)/.*",
        r"CPU, int8-dynamic, batch|at top-1 70\.0 %$",
        "what labelled data show to be wrong is not praised",
    ),
    (
        r"/models/3/",
        r"^Most: |^1\.30\.0, CPU|^0\.997$|^0\.002$|^1 003$",
        "what a search of the farm measured is no setting",
    ),
    (r"/watches/1/", r"^1\.30\.0$", "an alert says between which releases it began"),
    (
        r"/(runs|models)/\d/.*",
        r"^(Most: )?\d\W\d{3}( items/s .*)?$",
        "a rate has no more digits than its interval allows",
    ),
    (
        r"/runs/\d/.*",
        r"^(A/A twin of c1|Latency of the whole batch: .*|.*ended by signal 11 \(SIGSEGV\))\.$",
        "notes stand beside the verdict",
    ),
    (r"/alerts/\d/", r"^\d\S* % (fast|slow)er$", "what is left has an interval, which trials of before lack"),
    (r"/alerts/\d/", r"^SkipLayerNormalization .* changes most: ", "it says what explains the change"),
    (r"/alerts/\d/", r"slower than|more is left\.$", "it opens with few words; all of these follow in one line"),
    (r"/alerts/\d/", r" began: \d+ runs in [\d.]+ min\.$", "a duration is written as such"),
    (
        r"/alerts/1/",
        r"^(/layers\.0/attention/MatMul|180|179|−0\.988|−2\.84 to \+5\.23|−0\.4 %)$",
        "operators stand by the change that their interval is of: this row is further down",
    ),
    (r"/runs/\d/.*", r"^everywhere: ", "what differs in nothing else is named by its node"),
    (r"/watches/\d/", r" more than \d+ % (slower|larger|longer)$", "a rule says what a fresh block has to show again"),
    (
        r"/runs/3/.*",
        r"int8-dynamic runs classifier|^49\.9 % faster$",
        "accuracy that labelled data show to be lost leads",
    ),
    (r"/runs/[23]/cells/c\d/", r"^(encoder|classifier) on .*: \d\S+ ms", "a cell of wrong outputs says so first"),
)
# the numbers of the upload, which is called by them now
AGAINST = re.compile(r"Against [a-z][\w ]* \(")
# a document opens with what leads now
OPENING = re.compile(r'^  "sentence": ')

# `deploy/test --postgres` names a database; these tests make one of their own, since they need it empty
KINDS = ["sqlite", *(["postgresql"] if "ONNXFARM_TEST_DATABASE_URL" in os.environ else [])]


@dataclass(frozen=True)
class Recorded:
    """What the code of then said, and what this code says of the migrated database, by address."""

    kind: str
    then: Mapping[str, str]
    now: Mapping[str, str]

    def lines(self, address: str) -> tuple[list[str], list[str]]:
        return self._lines(self.then[address]), self._lines(self.now[address])

    def _lines(self, text: str) -> list[str]:
        # PostgreSQL keeps the keys of JSON columns in an order of its own
        if self.kind == "postgresql" and text[:1] in "{[":
            plain = json.loads(text, parse_float=lambda number: f"number {number}")
            text = json.dumps(plain, indent=2, sort_keys=True)
        return text.splitlines()


@pytest.fixture(scope="module", params=KINDS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    home, kind = tmp_path_factory.mktemp("home"), str(request.param)
    then = json.loads(gzip.decompress((HERE / "recorded.json.gz").read_bytes()))
    if kind == "sqlite":
        return Recorded(kind, then, migrated(home, ""))
    with Cluster() as cluster:
        return Recorded(kind, then, migrated(home, cluster.url))


def migrated(home: Path, database_url: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ONNXFARM_", "DJANGO_"))}
    own = {"ONNXFARM_HOME": str(home), "ONNXFARM_DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(HERE / "recording.py"), str(HERE / "farm.sql.gz"), str(home / "now.json")]
    done = subprocess.run(words, env=environment | own, cwd=home, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads((home / "now.json").read_text(encoding="utf-8"))
    return found


def added(old: list[str], new: list[str]) -> list[str]:
    """The lines that came between those of before, which have to be there, all of them and in their order."""
    rest, came = iter(old), []
    wanted = next(rest, None)
    for line in new:
        if line == wanted:
            wanted = next(rest, None)
        else:
            came.append(line)
    assert wanted is None, f"gone, or changed: {wanted}"
    return came


def gone(old: list[str], new: list[str]) -> list[str]:
    """The lines of before that are not there, whatever came between them."""
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    kept = {number for block in blocks for number in range(block.a, block.a + block.size)}
    return [line for number, line in enumerate(old) if number not in kept]


def test_documents_are_the_same_but_for_keys_that_came_later(recorded: Recorded) -> None:
    addresses = [address for address in recorded.then if address.endswith("/results") or address.startswith("rows of")]
    assert len(addresses) == 16
    for address in addresses:
        old, new = ([line for line in lines if not OPENING.match(line)] for lines in recorded.lines(address))
        # a document that was kept says it as then, another as now
        came = added(*([meant(AGAINST.sub("Against FP32 (", line)) for line in lines] for lines in (old, new)))
        assert [line for line in came if not LATER_KEY.match(line)] == [], address


@pytest.mark.parametrize("run", ["1", "2", "3"])
def test_a_document_that_was_kept_whole_has_not_even_later_keys(recorded: Recorded, run: str) -> None:
    address = f"/api/v1/runs/{run}/results"
    assert recorded.now[address] == recorded.then[address]


def test_every_value_of_the_csv_is_in_its_column_still(recorded: Recorded) -> None:
    """Columns may come at the end."""
    addresses = [address for address in recorded.then if address.endswith(".csv")]
    assert len(addresses) == 8
    for address in addresses:
        old, new = (list(csv.reader(io.StringIO(kept[address], newline=""))) for kept in (recorded.then, recorded.now))
        assert [row[: len(old[0])] for row in new] == old, address


def test_alerts_watches_and_logs_are_the_same(recorded: Recorded) -> None:
    addresses = [address for address in recorded.then if OF_API.match(address)]
    assert len(addresses) == 21
    for address in addresses:
        then, now = (json.loads(said[address]) for said in (recorded.then, recorded.now))
        for alert in [now] if isinstance(now, dict) else now:
            # said later
            for key in ("began", "compares_versions", "status"):
                alert.pop(key, None)
            for key in ("begins_in_minutes", "begins_in_minutes_at_least", "ends_in_minutes", "is_slowed"):
                alert.get("progress", {}).pop(key, None)
            for symptom in alert.get("symptoms", ()):
                symptom.pop("node", None)
            # a rule of all kinds is one of those that came later too
            if "rule" in alert:
                later = {"accuracy", "call"}
                alert["rule"]["kinds"] = [kind for kind in alert["rule"]["kinds"] if kind not in later]
        assert now == then, address


def test_pages_say_what_they_said(recorded: Recorded) -> None:
    """A page may say more; nothing with a figure is gone that was not meant to change."""
    pages = [address for address in recorded.then if address.startswith("/") and not address.startswith("/api")]
    assert len(pages) == 26
    for page in pages:
        old, new = recorded.lines(page)
        lost = gone([meant(line) for line in old], new)
        if recorded.kind == "postgresql":
            # the matrix, to copy, is in the order in which the database has its keys
            lost = [line for line in lost if line.lstrip("- ") not in {other.lstrip("- ") for other in new}]
        meant_to_go = [lines for of, lines, _ in GONE if re.fullmatch(of, page)]
        lost = [line for line in lost if not any(re.search(lines, line) for lines in meant_to_go)]
        assert [line for line in lost if re.search(r"\d", line)] == [], page


def meant(line: str) -> str:
    """The line as it is meant to be now."""
    for old, new, _ in MEANT:
        line = re.sub(old, new, line)
    return line
