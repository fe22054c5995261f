"""The client: the `onnxfarm` command, and the functions `bench`, `compare` and `open` for Python programs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxfarm.library import Results, bench, compare, open

__all__ = ["Results", "bench", "compare", "open"]


def __getattr__(name: str) -> object:
    """Import the library when a name of it is used, so that importing other modules of this package stays quick."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onnxfarm import library

    return getattr(library, name)
