"""`onnxfarm farm backup|restore FILE`: a whole farm in one file, on the farm's own machine."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.here.home import HOME_VARIABLE
from onnxfarm.problems import main_guard, needs_extra

# the server's program, by name: what users install never imports it
PROGRAM = "farm.config.keeping"

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", metavar="FOLDER", help="The farm's folder.", show_default="$ONNXFARM_HOME, else ./var"),
]


@main_guard()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; it must not exist yet.")],
    home: HomeOption = None,
) -> None:
    """Write database, files and key of this machine's farm into one file; it may go on working."""
    _run("backup", file, home)


@main_guard()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `farm backup` wrote.")],
    home: HomeOption = None,
) -> None:
    """Put a backup into an empty farm: a new folder, or a new database that $ONNXFARM_DATABASE_URL names."""
    _run("restore", file, home)


def _run(what: str, file: Path, home: Path | None) -> None:
    with needs_extra("server"):
        # looked for and not imported, as the command never imports the server
        if importlib.util.find_spec("django") is None:
            raise ModuleNotFoundError(name="django")
    folder = home or Path(os.environ.get(HOME_VARIABLE) or "var")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", PROGRAM, what, str(file), "--home", str(folder)])
