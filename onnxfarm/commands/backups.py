"""`onnxfarm farm backup|restore FILE`: a whole farm in one file, on the farm's own machine."""

from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.here.server import become, check_server, farm_home
from onnxfarm.problems import main_guard

# the server's program, by name: what users install never imports it
PROGRAM = "farm.config.backup_commands"

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
    check_server()
    become(PROGRAM, what, str(file), "--home", str(farm_home(home)))
