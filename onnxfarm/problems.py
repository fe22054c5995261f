"""The errors that end a command early, with the exit code of each.

    Problem
    ├── GateFailed       1   it ran, and a gate or a cell failed
    ├── Usage            2   a file, a value or an option cannot be used
    ├── Infrastructure   3   the farm, the network or this machine failed
    ├── TimedOut         4   a time limit was reached
    └── Stopped        130   somebody pressed Ctrl-C; shells use the same code

A command raises one of these with one sentence that says what happened, with which values, and what to do next. Any
other exception is a bug: its traceback is printed, and the exit code is 70, the internal error of sysexits.h.
"""

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import typer
from typer.models import CommandFunctionType

from farm.contract.texts import escape_line_breaks
from onnxfarm.gate_process import INTERNAL

if TYPE_CHECKING:
    from farm.contract.document import Document


class Problem(Exception):
    """A command cannot go on. The message is a sentence for the user."""

    exit_code = 3


class GateFailed(Problem):
    """The command ran, and a gate or a cell failed."""

    exit_code = 1


class Usage(Problem):
    """A file, a value or an option cannot be used."""

    exit_code = 2


class Infrastructure(Problem):
    """The farm, the network or this machine failed."""

    exit_code = 3


class TimedOut(Problem):
    """A time limit was reached."""

    exit_code = 4


class Stopped(Problem):
    """Somebody stopped the command. `measured`: the document of what was measured until then; None: nothing."""

    exit_code = 130

    def __init__(self, text: str, measured: "Document | None" = None) -> None:
        super().__init__(text)
        self.measured = measured


@contextmanager
def exit_with_problem() -> Iterator[None]:
    """Turn exceptions inside the `with` into an exit code, as typer.Exit.

    A Problem is printed as a sentence to stderr, and its own exit code is used. Typer's Exit, Abort and BadParameter
    pass unchanged, and so do BrokenPipeError, KeyboardInterrupt and SystemExit. Any other exception is a bug: its
    traceback is printed, and the exit code is INTERNAL. This is also a decorator: `@exit_with_problem()`.
    """
    try:
        yield
    except Problem as problem:
        # the sentence may quote other people's text, and a terminal obeys control characters
        print(f"onnxfarm: {escape_line_breaks(str(problem))}", file=sys.stderr)
        raise typer.Exit(problem.exit_code) from problem
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except Exception as mistake:
        traceback.print_exc()
        raise typer.Exit(INTERNAL) from mistake


class Commands(typer.Typer):
    """A typer app whose commands all run inside `exit_with_problem`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        register = super().command(name, **settings)
        return lambda function: register(exit_with_problem()(function))


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Turn a ModuleNotFoundError inside the `with` into Infrastructure, with how to install the extra."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise Infrastructure(
            f"This command needs {missing.name}, which is not installed: {explain_installation(extra)}"
        ) from missing


def explain_installation(extra: str, *, code: Path = Path(__file__).parents[1]) -> str:
    """Return a clause, without a capital, that says how to install an extra of onnxfarm, which is on no package index.

    `code`: the folder that onnxfarm is imported from, a checkout or site-packages.
    """
    if (code / "pyproject.toml").exists():
        return f"type pip install '.[{extra}]' in this checkout."
    link = _read_install_address()
    if link.startswith("file://"):
        return f"type pip install '.[{extra}]' in {url2pathname(urlsplit(link).path)}."
    if link:
        return f'type pip install "onnxfarm[{extra}] @ {link}".'
    return f"install onnxfarm[{extra}] by the command that Add a node on your farm's page shows."


def _read_install_address() -> str:
    """Read where onnxfarm was installed from, as pip and uv record it (PEP 610); empty if that is unknown.

    Returns only the address of a checkout that still exists, or of a wheel on the web.
    """
    try:
        recorded = distribution("onnxfarm").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    link = json.loads(recorded or "{}")
    url, digest = str(link.get("url", "")), (link.get("archive_info") or {}).get("hashes", {}).get("sha256", "")
    if url.startswith("file://") and "dir_info" in link and Path(url2pathname(urlsplit(url).path)).is_dir():
        return url
    if not url.startswith(("https://", "http://")):
        return ""
    return f"{url}#sha256={digest}" if digest else url
