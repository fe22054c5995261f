"""Too little room on a disk: where, how much is free there, and how much is needed."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.rules.wording.numbers import size
from onnxfarm.problems import Infrastructure

WAY_OUT = (
    "Measuring takes three times the size of the model, and 0.2 to 3 GB a runtime: make room there, or give another "
    "folder with --home."
)
FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def check_free_space(folder: Path, *, needed_bytes: int = 0, way_out: str) -> Iterator[None]:
    """Raises Infrastructure where the folder's disk has less room than is needed, or becomes full inside the `with`.

    `way_out` ends the sentence of the error.
    """
    if shutil.disk_usage(folder).free < needed_bytes:
        raise Infrastructure(_sentence(folder, needed_bytes, way_out))
    try:
        yield
    except OSError as problem:
        if problem.errno not in FULL:
            raise
        raise Infrastructure(_sentence(folder, needed_bytes, way_out)) from problem


def _sentence(folder: Path, needed_bytes: int, way_out: str) -> str:
    free = f"{size(shutil.disk_usage(folder).free)} free"
    if needed_bytes:
        return f"The disk of {folder} has too little room: {free}, {size(needed_bytes)} needed. {way_out}"
    return f"The disk of {folder}, or your quota there, is full: {free}. {way_out}"
