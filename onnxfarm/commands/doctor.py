"""`onnxfarm doctor`: what this machine lacks as a node, a farm or for the tests, and the command that adds it."""

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
from onnxfarm.problems import GateFailed, Usage, exit_with_problem, install_command

CHECK_S = 60.0


class Need(NamedTuple):
    """Something to check. `problem` returns what is wrong, empty if nothing is; `added` is the command to mend it."""

    what: str
    problem: Callable[[], str]
    added: str


def list_needs() -> dict[str, list[Need]]:
    """List what each part (node, server, tests) needs, by part; the tests only in a checkout.

    What the server and the tests look for themselves is asked of them, each in a process of its own.
    """
    chromium = "from tests.acceptance.browser.chromium import CHROMIUM as found; found or exit('none is on PATH')"
    npm = "import shutil; shutil.which('npm') or exit('npm is not on PATH')"
    parts = {
        "node": [
            _packages("node"),
            Need("a sandbox", _check_sandbox, "apt-get install bubblewrap libseccomp2"),
            Need("a package index", _check_answers, "pip config set global.index-url https://INDEX.EXAMPLE/simple"),
        ],
        "server": [
            _packages("server"),
            Need("a broker", lambda: _run_code("from farm.config.embedded import broker; broker.find_server()"),
                 "apt-get install redis-server"),
            Need("SQLite with full text search", _no_search, "use a Python whose sqlite3 has FTS5, such as Debian's"),
        ],
        "tests": [
            _packages("dev"),
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
            problem = need.problem()
            missing += bool(problem)
            print_lines(f"  ✕ {need.what}: {problem}" if problem else f"  ✓ {need.what}", console=console)
            if problem:
                print_lines(f"      {need.added}", console=console)
    if missing:
        raise GateFailed(f"{counted(missing, 'thing')} missing; the commands that add them are above.")


def _packages(extra: str) -> Need:
    return Need("packages", lambda: ", ".join(list_missing(_requirements(extra))), install_command(extra))


def list_missing(requirements: Iterable[Requirement]) -> Iterator[str]:
    """Yield a phrase for each requirement of which no version, or a wrong one, is installed."""
    for requirement in requirements:
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} is {found}, and {requirement.specifier} is needed"


def _requirements(extra: str) -> Iterator[Requirement]:
    """Yield what an extra of this release requires on this machine, and what the extras in it require."""
    checkout = ROOT / "pyproject.toml"
    if checkout.exists():
        named = map(Requirement, tomllib.loads(checkout.read_text())["project"]["optional-dependencies"][extra])
    else:
        named = map(Requirement, requires("onnxfarm") or ())
    for requirement in named:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == "onnxfarm":
            for inner in requirement.extras:
                yield from _requirements(inner)
        elif checkout.exists() or "extra" in str(requirement.marker):
            yield requirement


def _check_sandbox() -> str:
    return confinement.explain_missing_sandbox() if confinement.find_available_level() == "none" else ""


def _check_answers() -> str:
    asked = "from onnxfarm.here.published import asked_of; asked_of('onnxruntime').offered or exit('none answers')"
    return _run_code(asked)


def _no_search() -> str:
    try:
        sqlite3.connect(":memory:").execute("CREATE VIRTUAL TABLE words USING fts5(word)")
    except sqlite3.OperationalError as error:
        return str(error)
    return ""


def _run_code(code: str) -> str:
    """Run a piece of this release's code, and return the last line of its complaint; empty where it ends well."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment, capture_output=True, text=True, timeout=CHECK_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it gave no answer within {CHECK_S:.0f} s"
    if done.returncode == 0:
        return ""
    last_line = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
    if "No module named" in last_line:
        return "this is known once the packages are there"
    kind, _, rest = last_line.partition(": ")
    return rest if rest and kind.endswith("Error") else last_line
