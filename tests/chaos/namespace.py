"""A mount namespace of the harness's own, so that small file systems can be mounted and filled to the last byte."""

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

MARK = "ONNXFARM_CHAOS_NAMESPACE"
PIECE = b"\0" * (1 << 16)


class NoNamespaceError(RuntimeError):
    """Nothing can be mounted here; the text says why and what to do."""


def enter(words: list[str]) -> None:
    """Starts this program again with these words in a namespace of its own, unless it is in one.

    Raises NoNamespaceError where that is not allowed.
    """
    if os.environ.get(MARK):
        return
    options = ["-m"] if os.geteuid() == 0 else ["-rm"]
    try:
        able = subprocess.run(["unshare", *options, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        able = False
    if not able:
        raise NoNamespaceError(
            "A full disk needs a small file system in a namespace (unshare -m), which is not allowed here; leave the "
            "fault disk-full out."
        )
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", *options, sys.executable, "-m", "tests.chaos", *words])


def mount(folder: Path, *, megabytes: int) -> None:
    """A small file system on this folder, until the harness ends."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "none", str(folder)]
    subprocess.run(words, check=True)


def unmount(folder: Path) -> None:
    """Takes the file system away again, so that the folder can be removed; what has a file open there keeps it."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fills the file system of this folder; the file to remove again."""
    ballast = folder / "ballast"
    with contextlib.suppress(FileNotFoundError), ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(PIECE)
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
    return ballast
