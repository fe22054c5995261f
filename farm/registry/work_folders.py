"""Temporary folders for the workshop, with copies of an artifact's files under their names in the artifact."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from farm.base.refusals import NoSpace
from farm.registry import storage
from farm.registry.models import Artifact
from farm.registry.states import BUNDLE_ROLES

# ioctl of linux/fs.h, _IOW(0x94, 9, int): the target shares the blocks of the source, where that is supported
FICLONE: Final = 0x40049409
UNSUPPORTED: Final = (
    errno.EOPNOTSUPP,
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOTTY,
    errno.ENOSYS,
    errno.EPERM,
    errno.EACCES,
)


@contextmanager
def make_work_folder() -> Iterator[Path]:
    """Make an empty folder below STORE_DIR; it is removed with its content when the context ends."""
    root = storage.work_dir()
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as folder:
        yield Path(folder)


def copy_artifact_into(artifact: Artifact, folder: Path, *, only_main: bool = False) -> Path:
    """Copy the artifact's model and external data, or with `only_main` the model alone, into `folder`.

    Return the folder, which is created if it is missing. The files are plain, because ONNX and ONNX Runtime refuse
    symbolic and hard links. Raises NoSpace where the disk is full, FileNotFoundError where a file is missing from the
    store and the bucket, and Away where the bucket does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in artifact.files.select_related("blob"):
        if file.name == artifact.main or (file.role in BUNDLE_ROLES and not only_main):
            copy_file(storage.fetch_blob(team_id=artifact.team_id, sha256=file.blob.sha256), folder / file.name)
    return folder


def copy_file(source: Path, target: Path) -> None:
    """Copy a file, sharing its blocks where the file system can. Raises NoSpace where the disk is full."""
    try:
        if not _clone(source, target):
            shutil.copyfile(source, target)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(
                "The farm's disk is full, so the model could not be laid out.", hint=storage.NO_SPACE_HINT
            ) from problem
        raise


def _clone(source: Path, target: Path) -> bool:
    with source.open("rb") as original, target.open("wb") as twin:
        try:
            fcntl.ioctl(twin.fileno(), FICLONE, original.fileno())
        except OSError as problem:
            if problem.errno not in UNSUPPORTED:
                raise
            return False
    return os.path.getsize(target) == os.path.getsize(source)
