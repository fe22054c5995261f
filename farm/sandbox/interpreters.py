"""Lists the paths that a Python interpreter needs from its environment and from the installation beneath it.

Only paths that exist are listed, sorted.
"""

import os
from collections.abc import Iterator
from pathlib import Path

# `include`, because a framework that compiles a model needs Python's headers
_PARTS = ("bin", "include", "lib", "lib64", "pyvenv.cfg")


def list_interpreter_paths(python: Path) -> tuple[Path, ...]:
    paths = {root / part for root in _list_roots(python) for part in _PARTS}
    return tuple(sorted(path for path in paths if path.exists()))


def _list_roots(python: Path) -> Iterator[Path]:
    """Yield the folders of the installation and of the environment."""
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
