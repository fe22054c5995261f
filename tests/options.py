"""The options of a bench or a story, named with their defaults."""

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import Any


def read_options(
    description: str | None, *files: str, required: Collection[str] = (), words: list[str] | None = None, **options: Any
) -> argparse.Namespace:
    """Reads the command line: `files` are paths given without a name, and each option is written `--its-name`.

    What an option is given stands for its type too: a default, a type where there is none, False for a switch, or a
    pair of one of these and a help text.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in files:
        parser.add_argument(name, type=Path)
    for name, given in options.items():
        usual, about = given if isinstance(given, tuple) else (given, None)
        known: dict[str, Any] = {"action": "store_true"}
        if isinstance(usual, type):
            known = {"type": usual, "required": name in required}
        elif usual is not False:
            known = {"type": type(usual) if not isinstance(usual, Path) else Path, "default": usual}
        parser.add_argument(f"--{name.replace('_', '-')}", help=about, **known)
    return parser.parse_args(words)
