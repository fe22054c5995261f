"""Checks that a disk has enough free space, and explains errors of a full disk."""

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
FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def check_free_space(folder: Path, *, needed_bytes: int = 0, way_out: str) -> Iterator[None]:
    """Raise Infrastructure if the folder's disk lacks `needed_bytes` of free space, or becomes full inside the `with`.

    Any OSError in the `with` that says that a disk or a quota is full becomes Infrastructure; other errors pass
    unchanged. `way_out`: the end of the error's message, which says what to do.
    """
    if shutil.disk_usage(folder).free < needed_bytes:
        raise Infrastructure(_describe_disk(folder, needed_bytes, way_out))
    try:
        yield
    except OSError as problem:
        if problem.errno not in FULL_ERRORS:
            raise
        raise Infrastructure(_describe_disk(folder, needed_bytes, way_out)) from problem


def _describe_disk(folder: Path, needed_bytes: int, way_out: str) -> str:
    free = f"{size(shutil.disk_usage(folder).free)} free"
    if needed_bytes:
        return f"The disk of {folder} has too little room: {free}, {size(needed_bytes)} needed. {way_out}"
    return f"The disk of {folder}, or your quota there, is full: {free}. {way_out}"
