"""`onnxfarm doctor`: shows what this machine lacks as a node, as a farm or for the tests, and how to add it."""

import os
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, NamedTuple

import typer
from packaging.requirements import Requirement

from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.numbers import counted
from farm.sandbox import confinement
from onnxfarm.here.home import ROOT
from onnxfarm.outputs import make_console, print_lines
from onnxfarm.problems import GateFailed, Usage, exit_with_problem, explain_installation

CHECK_S = 60.0


class Need(NamedTuple):
    """Something that a machine needs. `find_problem` checks for it, and returns what is wrong; empty if nothing is.

    `way_out`: the command that adds it, or advice.
    """

    name: str
    find_problem: Callable[[], str]
    way_out: str


def list_needs() -> dict[str, list[Need]]:
    """List what this machine needs, by part: `node`, `server`, and in a checkout also `tests`.

    Nothing is checked yet. Checks that need a part's own code run that code in another process.
    """
    index = (
        "from onnxfarm.here.release_index import fetch_listing; "
        "fetch_listing('onnxruntime').offered or exit('none answers')"
    )
    chromium = "from tests.acceptance.browser.chromium import CHROMIUM as found; found or exit('none is on PATH')"
    npm = "import shutil; shutil.which('npm') or exit('npm is not on PATH')"
    parts = {
        "node": [
            _make_packages_need("node"),
            Need("a sandbox", _check_sandbox, "apt-get install bubblewrap libseccomp2"),
            Need("a package index", lambda: _run_code(index),
                 "pip config set global.index-url https://INDEX.EXAMPLE/simple"),
        ],
        "server": [
            _make_packages_need("server"),
            Need("a broker", lambda: _run_code("from farm.config.embedded import broker; broker.find_server()"),
                 "apt-get install redis-server"),
            Need("SQLite with full text search", _check_full_text_search,
                 "use a Python whose sqlite3 has FTS5, such as Debian's"),
        ],
        "tests": [
            _make_packages_need("dev"),
            Need("Chromium, for browser tests", lambda: _run_code(chromium), "apt-get install chromium"),
            Need("npm, for OpenID and accessibility", lambda: _run_code(npm), "apt-get install nodejs npm"),
            Need("PostgreSQL, for --postgres", lambda: _run_code("from tests import postgres; postgres.programs()"),
                 "apt-get install postgresql"),
        ],
    }  # fmt: skip
    return parts if (ROOT / "tests").is_dir() else {part: parts[part] for part in ("node", "server")}


@exit_with_problem()
def doctor(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="node, server or tests.", show_default="all of them")
    ] = "",
) -> None:
    """Say what is missing on this machine for a node, a server and the tests, and the command that adds it.

    Exit code 0: nothing is missing; 1: something is.
    """
    parts = list_needs()
    if part and part not in parts:
        raise Usage(choice_sentence("part", part, parts))
    console, missing = make_console(), 0
    for name in [part] if part else parts:
        print_lines(f"{name}:", console=console)
        for need in parts[name]:
            problem = need.find_problem()
            missing += bool(problem)
            print_lines(f"  ✕ {need.name}: {problem}" if problem else f"  ✓ {need.name}", console=console)
            if problem:
                print_lines(f"      {need.way_out}", console=console)
    if missing:
        raise GateFailed(f"{counted(missing, 'thing')} missing; the commands that add them are above.")


def _make_packages_need(extra: str) -> Need:
    return Need("packages", lambda: ", ".join(list_missing(_list_requirements(extra))), explain_installation(extra))


def list_missing(requirements: Iterable[Requirement]) -> Iterator[str]:
    """Yield a clause for each requirement that is not installed, or whose installed version does not fit.

    Markers and extras of the requirements are ignored.
    """
    for requirement in requirements:
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield f"{requirement.name} is {installed}, and {requirement.specifier} is needed"


def _list_requirements(extra: str) -> Iterator[Requirement]:
    """Yield what an extra of onnxfarm requires on this machine, including the extras that it names."""
    project = ROOT / "pyproject.toml"
    if project.exists():
        texts = tomllib.loads(project.read_text())["project"]["optional-dependencies"][extra]
    else:
        texts = requires("onnxfarm") or ()
    for requirement in map(Requirement, texts):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "onnxfarm":
            for included in requirement.extras:
                yield from _list_requirements(included)
        elif project.exists() or "extra" in str(requirement.marker):
            yield requirement


def _check_sandbox() -> str:
    return confinement.explain_missing_sandbox() if confinement.find_available_level() == "none" else ""


def _check_full_text_search() -> str:
    try:
        sqlite3.connect(":memory:").execute("CREATE VIRTUAL TABLE words USING fts5(word)")
    except sqlite3.OperationalError as error:
        return str(error)
    return ""


def _run_code(code: str) -> str:
    """Run Python code in a process that can import onnxfarm. Return why it failed, as one line; empty on success."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    try:
        process = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, capture_output=True, text=True, timeout=CHECK_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it gave no answer within {CHECK_S:.0f} s"
    if process.returncode == 0:
        return ""
    last_line = (process.stderr.strip().splitlines() or [f"it ended with {process.returncode}"])[-1]
    if "No module named" in last_line:
        return "this is known once the packages are there"
    error, _, message = last_line.partition(": ")
    return message if message and error.endswith("Error") else last_line
