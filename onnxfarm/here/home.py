"""The folders in which this machine keeps what it measures with and what its farm has, and the farm's own programs.

A server's program is what this process becomes: what users install never imports the server.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

from onnxfarm.problems import require_extra

HOME_VARIABLE = "ONNXFARM_HOME"
# where this package lies: a checkout is known by nobody but the command that was started from it
ROOT = Path(__file__).parents[2]


def default_home() -> Path:
    """Return the folder where commands that measure without a farm keep their runtimes: $ONNXFARM_HOME, or a cache."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "onnxfarm"


def find_farm_home(given: Path | None) -> Path:
    return given or Path(os.environ.get(HOME_VARIABLE) or "var")


def check_server_installed() -> None:
    """Raises Infrastructure, naming the extra, where the server is not installed."""
    with require_extra("server"):
        # looked for and not imported
        if importlib.util.find_spec("django") is None:
            raise ModuleNotFoundError(name="django")


def exec_module(program: str, *words: str) -> NoReturn:
    """Replace this process by `python -m PROGRAM WORDS…`, which finds this release from any folder."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", program, *words], os.environ | {"PYTHONPATH": path})
