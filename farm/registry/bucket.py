"""Copies the store's files to an S3-compatible bucket, as `team/aa/sha256`, for farms of several machines.

The bucket is off unless STORAGES has `objects`. With a bucket, the folder of a machine has only the files that this
machine wrote or fetched. The bucket has all files; each is uploaded before any row names it.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, storages

from farm.base.refusals import Away

ALIAS = "objects"
CHUNK_BYTES = 1 << 20


def is_configured() -> bool:
    return ALIAS in settings.STORAGES


def upload_file(path: Path, *, team_id: int, sha256: str) -> None:
    """Upload a file of the store to the bucket. Nothing happens if it is there already or no bucket is configured.

    Raises Away where the bucket does not answer.
    """
    if not is_configured():
        return
    with _open_bucket() as bucket, path.open("rb") as file:
        name = make_object_name(team_id=team_id, sha256=sha256)
        if not bucket.exists(name):
            bucket.save(name, File(file, name))


def download_file(target: Path, *, team_id: int, sha256: str, drafts: Path) -> bool:
    """Download a file from the bucket to `target`, whole or not at all; it is written to the folder `drafts` first.

    Return False where the bucket has no such file, or no bucket is configured. Raises Away where the bucket does not
    answer or the content has another sha256.
    """
    if not is_configured():
        return False
    drafts.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=drafts)
    try:
        with _open_bucket() as bucket, os.fdopen(handle, "wb") as file:
            name = make_object_name(team_id=team_id, sha256=sha256)
            if not bucket.exists(name):
                return False
            digest = hashlib.sha256()
            with bucket.open(name, "rb") as stored:
                for piece in iter(lambda: stored.read(CHUNK_BYTES), b""):
                    digest.update(piece)
                    file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != sha256:
            raise Away(f"The bucket's file {sha256[:12]}… has another content than its name says.", code="damaged")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(draft, target)
        return True
    finally:
        Path(draft).unlink(missing_ok=True)


def delete_file(*, team_id: int, sha256: str) -> None:
    """Delete a file from the bucket, if a bucket is configured. Raises Away where the bucket does not answer."""
    if is_configured():
        with _open_bucket() as bucket:
            bucket.delete(make_object_name(team_id=team_id, sha256=sha256))


def make_object_name(*, team_id: int, sha256: str) -> str:
    return f"{team_id}/{sha256[:2]}/{sha256}"


@contextmanager
def _open_bucket() -> Iterator[Storage]:
    """Open the bucket. Errors of its client library are raised as Away."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield storages[ALIAS]
    except (BotoCoreError, ClientError) as problem:
        raise Away(
            f"The farm's bucket rejected a request: {problem}",
            code="bucket_away",
            hint="Try again; if it persists, the administrator should check ONNXFARM_BUCKET and its keys.",
        ) from problem
