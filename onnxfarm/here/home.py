"""Finds this machine's folders for runtimes and for its farm, and starts the farm's programs.

The client never imports the server. It replaces its own process by the server's program.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

from onnxfarm.problems import require_extra

HOME_VARIABLE = "ONNXFARM_HOME"
# the folder of the code, which other processes import it from; a checkout is not installed
ROOT = Path(__file__).parents[2]


def default_home() -> Path:
    """Return the folder for runtimes of commands that measure here: $ONNXFARM_HOME, else one in the user's cache."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "onnxfarm"


def find_farm_home(folder: Path | None) -> Path:
    """Return the folder of this machine's farm: the given one, else $ONNXFARM_HOME, else ./var. It may not exist."""
    return folder or Path(os.environ.get(HOME_VARIABLE) or "var")


def check_server_installed() -> None:
    """Raise Infrastructure, with how to install the server, if it is missing. It looks for Django only."""
    with require_extra("server"):
        if importlib.util.find_spec("django") is None:
            raise ModuleNotFoundError(name="django")


def exec_module(program: str, *words: str) -> NoReturn:
    """Replace this process by `python -m PROGRAM WORDS…`, which imports the same release of onnxfarm."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", program, *words], os.environ | {"PYTHONPATH": path})
