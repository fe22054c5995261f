"""What users install: the `onnxfarm` command, and for Python programs `bench`, `compare` and `open`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxfarm.library import Results, bench, compare, open

__all__ = ["Results", "bench", "compare", "open"]


def __getattr__(name: str) -> object:
    """Imported once it is asked for: importing a module of this package costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onnxfarm import library

    return getattr(library, name)
