"""A database that an older release filled: migrated, it says of its runs and alerts what that release said.

`make.py` filled it with the code of ad92674 and recorded what that code said. What was meant to change since stands in
MEANT with its reason, and in test_the_farm_writes_the_command; everything else has to be there line by line.
"""

import csv
import difflib
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.runs.states import FARM_MADE
from tests.postgres import Cluster

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OF_RUN = re.compile(r"/api/v1/runs/\d+")
# of a run in the list of before: its name, model, sign, state, sentence, cells, when, who
ROW_LINES = 8
# the sentence leads with the largest decided change since, and names the runtime of what else was compared
COMMAND = re.compile(r'^( +"(?:repeat_command|command|sentence)": )".*"')
REASON = re.compile(r'"reason":"[a-z-]*",|"waiting":"",|"moved": \[\], |, "moved": \[\]|^ +"reason": "[a-z-]*",$')
# a key that came later says nothing of a document of before; but that verdicts were of wall-clock time, as all were
LATER_KEY = re.compile(
    r'^ +"(\w+": (null|0|""|\[\]|\{\})|verdict_from": "wall"|scenario": "single"|items_\w+": (\d\.\d+|"[a-z ]+")),?$'
)
OF_API = re.compile(r"/api/v1/(alerts|watches|runs/\d+(/events)?$)")
COPIED = re.compile(r"^onnxfarm bench .*$")
# what stands in its place has another number of lines, and tests of its own
LEADING = "…"
# line of a page then, the same line now, why
MEANT = (
    (r"^95\.0 MB$", "91 MiB", "memory is in MiB, as operating systems count it"),
    (r"^optimisation level", "optimization level", "an axis is called as ONNX Runtime calls the option, on every page"),
    (r"(^|· )default session", r"\1session default", "the axis is said before its value, as other axes are"),
    (r"(^|· )(\d+ without .*) session$", r"\1session \2", "the axis is said before its value, as other axes are"),
    (r"^\+(698|692 to \+703|694 to \+703) %$", LEADING, "batches are compared by items per second"),
    (r"^ONNX Runtime 1\.31\.1 runs encoder \(CPU, fp32, batch 8.*$", LEADING, "the largest change leads"),
    (r"^SkipLayerNormalization explains all of it\. 3 of 3.*$", LEADING, "it stands in the second sentence"),
    (r"(\(CPU, batch 1, 1 thread)(\) 49\.9 % faster)", r"\1, ONNX Runtime 1.31.1\2", "what is shared is said whole"),
    (r"^▲ slower: ONNX Runtime 1\.31\.1 runs encoder .*$", LEADING, "the largest change leads on a cell's page too"),
    (r"^2 cells of encoder measured, none to compare\.$", LEADING, "lists have columns in place of sentences"),
    (r"^Measured with it against without it, on (.*)$", r"Measured with and without it on \1", "plain English"),
    (r"^(\S+) stands at \+([\d.]+ %) against (\S+)$", r"\1 against \3: \2 slower", "changes are written one way"),
    (r"^\+([\d.]+ %)$", r"\1 slower", "changes are written one way"),
    (r"^−([\d.]+ %)$", r"\1 faster", "changes are written one way"),
    (r"^\+([\d.]+) to \+([\d.]+ %)$", r"\1–\2", "changes are written one way"),
    (r"^−([\d.]+) to −([\d.]+) %$", r"\2–\1 %", "changes are written one way"),
    (r"^−([\d.]+) to \+([\d.]+ %)$", r"\1 % faster to \2 slower", "changes are written one way"),
    (r" 57% of the time\.$", " 57 % of the time.", "shares are written alike everywhere"),
    (
        r" 1\.30\.0 is the first bad release; 1\.29\.0 was still good \(1 probe\)\.",
        "",
        "it stands in the facts of an alert, and its trials in a table",
    ),
    (r"^(SkipLayerNormalization: 2 nodes, 81.* Leaving out )", r"Since 1.30.0. \1", "an alert says since when first"),
    (r"releases were tried\)\.$", "releases were measured).", "plain English"),
    (r" appears and a model gets a version,", " appears or a model gets a version,", "any one starts a round"),
    (COPIED, "onnxfarm bench …", "the farm writes commands itself, from the whole cell"),
)


# what stood in sentences on the pages of a model and a watch, whose lists of runs and alerts have columns now
LISTED = ("/models/", "/watches/")
HEADINGS = re.compile(r"^\d+ of \d+ cells done; |^\d+ alerts?$|^ONNX Runtime [\d.]+$|, since [\d.]+ · opened$")
IN_COLUMNS = re.compile(r" runs .* (?P<change>[\d.]+ %) (?:slower|faster) than .* \(95 % interval ")


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


def without_commands(lines: list[str]) -> list[str]:
    return [COMMAND.sub(r"\1…", line).removesuffix(",") for line in lines]


def test_documents_are_the_same_but_for_commands_and_keys_that_came_later(recorded: Recorded) -> None:
    addresses = [address for address in recorded.then if address.endswith("/results") or address.startswith("rows of")]
    assert len(addresses) == 16
    for address in addresses:
        came = added(*map(without_commands, recorded.lines(address)))
        assert [line for line in came if not LATER_KEY.match(line)] == [], address


@pytest.mark.parametrize("run", ["1", "2", "3"])
def test_a_document_that_was_kept_whole_has_not_even_later_keys(recorded: Recorded, run: str) -> None:
    old, new = (kept[f"/api/v1/runs/{run}/results"].splitlines() for kept in (recorded.then, recorded.now))
    assert [line for line in new if not COMMAND.match(line)] == [line for line in old if not COMMAND.match(line)]


def test_the_farm_writes_the_command_of_each_cell_itself(recorded: Recorded) -> None:
    """The node's left out what it took for a default, named the model of another run, or was not there."""
    documents = [json.loads(text) for address, text in recorded.now.items() if address.endswith("/results")]
    cells = [cell for document in documents for cell in document["cells"]]
    assert len(cells) == 54
    for cell in cells:
        words = shlex.split(cell["repeat_command"])
        assert words[:3] == ["onnxfarm", "bench", f"{cell['model']}.onnx"]
        said = dict(zip(words[3::2], words[4::2], strict=False))
        assert said["--ort"] == cell["runtime"].partition("==")[2]
        assert (said["--provider"], said["--precision"]) == (cell["provider"], cell["precision"])
        assert (said["--batch"], said["--threads"]) == (str(cell["batch"]), str(cell["threads"]))


def test_every_value_of_the_csv_is_in_its_column_still(recorded: Recorded) -> None:
    """Columns came at the end: the other axes, and the other metrics."""
    addresses = [address for address in recorded.then if address.endswith(".csv")]
    assert len(addresses) == 8
    for address in addresses:
        old, new = (list(csv.reader(io.StringIO(kept[address], newline=""))) for kept in (recorded.then, recorded.now))
        assert [row[: len(old[0])] for row in new] == old, address


def test_alerts_watches_and_logs_are_the_same(recorded: Recorded) -> None:
    addresses = [address for address in recorded.then if OF_API.match(address)]
    assert len(addresses) == 21
    for address in addresses:
        old, new = recorded.lines(address)
        # why there is a run is said since, for what one waits, and which package moved
        assert [REASON.sub("", line) for line in new if not REASON.fullmatch(line)] == old, address


def test_pages_say_what_they_said(recorded: Recorded) -> None:
    """A page may say more; nothing with a figure is gone that was not meant to change."""
    pages = [address for address in recorded.then if address.startswith("/") and not address.startswith("/api")]
    assert len(pages) == 18
    for page in pages:
        old, new = recorded.lines(page)
        # tables and charts begin with the axis that leads; those of the releases have an address of their own
        new += recorded.now.get(f"{page}?along=runtime", "").splitlines()
        lost = gone([meant(line) for line in old], [COPIED.sub("onnxfarm bench …", line) for line in new])
        if recorded.kind == "postgresql":
            # the matrix, to copy, is in the order in which the database has its keys
            lost = [line for line in lost if line.lstrip("- ") not in {other.lstrip("- ") for other in new}]
        if page.startswith("/alerts/"):
            # its evidence comes first now, and what happened as a timeline
            # and what a switch gives back is a share, which keeps its sign
            lost = [line for line in lost if not {line, f"−{line.removesuffix(' faster')}"} & {*new}]
        if page.startswith(LISTED):
            lost = [line for line in lost if not stands_in_columns(line, new)]
        if page.startswith("/models/"):
            # 1.32.0 came since: one release more, and in the range of those of which the same is to be said
            since = {"of 35 releases": "of 36 releases", "– 1.31.1": "– 1.32.0"}
            lost = [line for line in lost if not any(line.replace(*pair) in new for pair in since.items())]
            moved = rows_of_farm_made(recorded, old)
            lost = [line for line in lost if line not in moved]
        assert [line for line in lost if re.search(r"\d", line)] == [], page


def rows_of_farm_made(recorded: Recorded, page: list[str]) -> list[str]:
    """The lines of a list of before about runs that the farm made for a watch: a model's page counts them since."""
    known = [json.loads(text) for address, text in recorded.now.items() if OF_RUN.fullmatch(address)]
    made = {f"run {run['id']}" for run in known if run["reason"] in FARM_MADE}
    assert made
    return [line for number, one in enumerate(page) if one in made for line in page[number : number + ROW_LINES]]


def stands_in_columns(line: str, page: list[str]) -> bool:
    """Whether it headed or counted what columns say now, or is said once still: whole, or its change."""
    sentence = IN_COLUMNS.search(line)
    is_said = line in page or (sentence is not None and sentence["change"] in "\n".join(page))
    return is_said or HEADINGS.search(line) is not None


def meant(line: str) -> str:
    """The line as it is meant to be now."""
    for old, new, _ in MEANT:
        line = re.sub(old, new, line)
    return line
