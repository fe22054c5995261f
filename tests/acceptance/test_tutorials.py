"""The tutorials of docs/, as they are written: their commands typed in a clone, their outputs compared by shape.

A block `sh` is typed; one that `stays-up` is left running, as in a terminal of its own; one that `fails` ends with 1.
The `text` behind it is its output: each line has to come, in this order; numbers are any, and … is anything. A code, a
fingerprint and a port stand for those that were printed; what quickstart would install is here already.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.config.embedded.plan import find_free_port
from tests.conftest import PROJECT
from tests.processes import wait_for
from tests.stories import TUTORIALS

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

BLOCK = re.compile(r"^ *```sh ?([a-z-]*)\n(.*?)^ *```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PRINTED = {"ofe_…": r"ofe_[\w-]{8,}", "1a2b:3c4d:…": r"\b[0-9a-f]{4}(?::[0-9a-f]{4}){7}"}
MINUTES = 12


class Terminal:
    """A clone whose `.venv` runs its own code with what is installed here; all that was printed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.printed = folder / "clone", ""
        self.port, self.exported = find_free_port(), ""
        self.running: list[subprocess.Popen[bytes]] = []
        subprocess.run(["git", "clone", "-q", PROJECT, self.folder], check=True)
        (self.folder / ".venv/bin").mkdir(parents=True)
        python = f'#!/bin/sh\nPYTHONPATH={self.folder} exec {sys.executable} "$@"\n'
        start = f'#!/bin/sh\nPYTHONPATH={self.folder} exec {sys.executable} -m onnxfarm.main "$@"\n'
        for name, text in (("python", python), ("onnxfarm", start)):
            (self.folder / ".venv/bin" / name).write_text(text)
            (self.folder / ".venv/bin" / name).chmod(0o755)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("ONNXFARM_")}
        self.environment |= {"ONNXFARM_HOST_LOCK": str(folder / "lock"), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
        self.environment |= {
            f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }

    def words(self, block: str) -> str:
        """The block with the ports of this farm, and what was printed in the place of what stands for it."""
        for sign, form in PRINTED.items():
            if sign in block:
                block = block.replace(sign, re.findall(form, self.printed)[-1])
        gateway = re.findall(r"enroll http://127\.0\.0\.1:(\d+)", self.printed)
        block = block.replace(":8001", f":{gateway[-1]}" if gateway else ":8001").replace(":8000", f":{self.port}")
        starts = r"(bash deploy/quickstart|onnxfarm serve)( --no-node)?$"
        quickstart = f"cd {self.folder} && .venv/bin/python -m farm.config.embedded.quickstart"
        block = re.sub(starts, rf"\1\2 --port {self.port}", block, flags=re.MULTILINE)
        return re.sub(r"^bash deploy/quickstart", quickstart, block, flags=re.MULTILINE)

    def type(self, block: str, *, code: int) -> str:
        """What it printed; exports of a block before hold."""
        self.exported += "".join(re.findall(r"^export .*\n", block, re.MULTILINE))
        script = f"set -e\n{self.words(self.exported + block)}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, check=False, timeout=60 * MINUTES,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.printed += done.stdout
        assert done.returncode == code, f"{block}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def leave_running(self, block: str, output: str) -> None:
        """Starts it and waits until it has printed what the page says."""
        log = self.folder / f"terminal-{len(self.running)}.log"
        with log.open("wb") as file:
            started = subprocess.Popen(
                ["bash", "-c", self.words(block)],
                cwd=self.folder, env=self.environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.running.append(started)

        def has_printed() -> bool:
            return missing(self.words(output), log.read_text()) is None or started.poll() is not None

        wait_for(has_printed, what=output, seconds=60 * MINUTES)
        assert started.poll() is None, log.read_text()
        self.printed += log.read_text()

    def end(self) -> None:
        for started in reversed(self.running):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGINT)
            started.wait(60)


def missing(expected: str, printed: str) -> str | None:
    """The first line of the expected output that did not come, in this order."""
    rest = printed
    for line in expected.splitlines():
        form = "".join(
            ".*" if part == "…" else r"[\d.,]+" if re.fullmatch(r"[\d.,]*\d", part) else re.escape(part)
            for part in re.split(r"(…|\d[\d.,]*\d|\d)", line.strip())
        )
        found = re.search(form.replace(r"\ ", r"\s+"), rest)
        if found is None:
            return line
        rest = rest[found.end() :]
    return None


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_as_it_is_written(name: str, terminal: Terminal) -> None:
    page = (PROJECT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    blocks = BLOCK.findall(page)
    assert blocks
    for kind, typed, output in blocks:
        block = re.sub(r"^ {3}", "", typed, flags=re.MULTILINE) if typed.startswith("   ") else typed
        if kind == "stays-up":
            terminal.leave_running(block, output)
            continue
        printed = terminal.type(block, code=1 if kind == "fails" else 0)
        assert missing(terminal.words(output), printed) is None, printed


def test_an_output_is_compared_by_its_shape() -> None:
    printed = "Run 7 has begun.\n1.31.1 is 32 % slower than 1.29.0 (28–35 %).\nDone."
    assert missing("… 18 % slower than 1.29.0 …\nDone.", printed) is None
    assert missing("Done.\nRun 1 has begun.", printed) == "Run 1 has begun."
