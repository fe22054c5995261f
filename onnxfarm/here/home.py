"""The folder in which this machine keeps what it measures with."""

import os
from pathlib import Path

HOME_VARIABLE = "ONNXFARM_HOME"


def default_home() -> Path:
    """Where the commands that measure without a farm keep their runtimes."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "onnxfarm"
