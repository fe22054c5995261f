"""Which paths a Python interpreter needs: its environment, and the installation that lies behind it."""

import os
from collections.abc import Iterator
from pathlib import Path

# headers: a framework that compiles a model compiles against them
_PARTS = ("bin", "include", "lib", "lib64", "pyvenv.cfg")


def list_interpreter_paths(python: Path) -> tuple[Path, ...]:
    found = {place / part for place in _places(python) for part in _PARTS}
    return tuple(sorted(path for path in found if path.exists()))


def _places(python: Path) -> Iterator[Path]:
    yield Path(os.path.realpath(python)).parent.parent
    environment = Path(os.path.abspath(python)).parent.parent
    configuration = environment / "pyvenv.cfg"
    if not configuration.is_file():
        return
    yield environment
    for line in configuration.read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            yield Path(value.strip()).parent
            yield Path(os.path.realpath(value.strip())).parent
