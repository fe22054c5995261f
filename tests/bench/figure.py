"""What every figure carries: the machine it was made on, its seed and its command."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def publish(*, claim: str, seed: int, figures: Mapping[str, Any]) -> None:
    """Prints one JSON object: the claim, where it comes from, and the figures."""
    command = f"python -m {_module()} {' '.join(sys.argv[1:])}".strip()
    source = {"claim": claim, "seed": seed, "command": command, "machine": machine()}
    print(json.dumps({**source, **figures}, indent=2, allow_nan=False))


def machine() -> dict[str, Any]:
    """The processor by name, its logical cores, and the Python and NumPy at work."""
    return {
        "cpu": _cpu_name(),
        "logical_cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _module() -> str:
    spec = sys.modules["__main__"].__spec__
    return spec.name if spec else sys.argv[0]
