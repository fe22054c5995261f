"""Which release of onnxfarm this is."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def release() -> str:
    """The installed release, or that of the checkout the command was started from."""
    try:
        return version("onnxfarm")
    except PackageNotFoundError:
        # a checkout is run as it lies; it has the file that a wheel is built from
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
        return f"{project['project']['version']} (checkout)"
