"""The server's programs, which this process becomes: what users install never imports the server."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

from onnxfarm.here.home import HOME_VARIABLE
from onnxfarm.problems import needs_extra

# where this package lies: a checkout is known by nobody but the command that was started from it
ROOT = Path(__file__).parents[2]


def check_server() -> None:
    """Raises Infrastructure, naming the extra, where the server is not installed."""
    with needs_extra("server"):
        # looked for and not imported
        if importlib.util.find_spec("django") is None:
            raise ModuleNotFoundError(name="django")


def farm_home(given: Path | None) -> Path:
    """The folder of this machine's farm."""
    return given or Path(os.environ.get(HOME_VARIABLE) or "var")


def become(program: str, *words: str) -> NoReturn:
    """Goes on as `python -m PROGRAM WORDS…`, in whatever folder it was started."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", program, *words], os.environ | {"PYTHONPATH": path})
