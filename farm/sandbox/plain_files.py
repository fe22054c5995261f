"""Safe access to a folder that a child could write to: only plain files are read, by names that we choose.

Paths never come from the child: callers name a file themselves, or give a pattern of names. They get plain files only:
links are not followed, pipes are not waited for, and a file with a second hard link is refused.
"""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from farm.sandbox.policy import SandboxError

# a folder with more entries is treated as an attack
MAX_ENTRIES = 20_000
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class NotPlainFileError(SandboxError):
    """The child left something other than plain files; the message names it."""


def check_plain_files(folder: Path, *, max_entries: int = MAX_ENTRIES) -> None:
    """Check that the folder holds nothing but plain files and folders, at any depth, and at most `max_entries`.

    Raises NotPlainFileError otherwise. A folder that does not exist passes.
    """
    count = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            count += 1
            if count > max_entries:
                raise NotPlainFileError(f"It left more than {max_entries:,} files.")
            path = Path(place, name)
            if not is_plain(path) and not stat.S_ISDIR(path.lstat().st_mode):
                raise NotPlainFileError(
                    f"It left {_make_printable(name)}, which is {_describe_kind(path)} and not a regular file."
                )


def is_plain(path: Path) -> bool:
    """Whether the path is a regular file with one hard link, and not a symbolic link; False where nothing is there."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def list_plain_files(folder: Path, pattern: str) -> list[str]:
    """List, sorted, the names of plain files in the folder that match the regular expression as a whole.

    Anything else with such a name is left out. Raises FileNotFoundError where the folder is gone.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if re.fullmatch(pattern, entry.name)]
    return sorted(name for name in names if is_plain(folder / name))


@contextlib.contextmanager
def open_plain_file(path: Path) -> Iterator[BinaryIO]:
    """Open a plain file to read. Raises FileNotFoundError, or NotPlainFileError where something else has the name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINKS | _NO_WAITING)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise NotPlainFileError(
            f"{_make_printable(path.name)} is {_describe_kind(path)} and not a regular file."
        ) from problem
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise NotPlainFileError(f"{_make_printable(path.name)} is {_describe_kind(path)} and not a regular file.")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def copy_file_into(source: Path, target: Path) -> Path:
    """Copy a file of ours into a child's folder, and return `target`. Anything at `target` is removed first."""
    remove_path(target)
    with source.open("rb") as original, target.open("xb") as copy:
        shutil.copyfileobj(original, copy, 1 << 20)
    return target


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def make_folder(path: Path) -> Path:
    """Make a folder inside a child's folder and return its path; an existing folder is kept, anything else replaced."""
    if not is_folder(path):
        remove_path(path)
        path.mkdir()
    return path


def remove_path(path: Path) -> None:
    """Remove the file, link or whole folder at this path, where there is one; links are not followed."""
    if is_folder(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _describe_kind(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError:
        return "gone"
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    return kinds.get(stat.S_IFMT(status.st_mode), "a file with a second name" if status.st_nlink > 1 else "a device")


def _make_printable(name: str) -> str:
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name[:80])
