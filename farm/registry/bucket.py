"""The store's files in an S3-compatible bucket, for farms of several machines: named as in the store, `team/aa/sha256`.

Off unless STORAGES has `objects`. The folder of a machine is then what it has fetched or written itself, and the bucket
has every file: a file is in the bucket before any row names it.
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
    """Puts a whole file of the store into the bucket, unless it is there. Raises Away."""
    if not is_configured():
        return
    with _asked() as bucket, path.open("rb") as file:
        name = object_name(team_id=team_id, sha256=sha256)
        if not bucket.exists(name):
            bucket.save(name, File(file, name))


def download_file(target: Path, *, team_id: int, sha256: str, drafts: Path) -> bool:
    """Fetches a file to its place in the store, whole or not at all; False when the bucket has none such.

    Raises Away, also when what came is not what its name says.
    """
    if not is_configured():
        return False
    drafts.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=drafts)
    try:
        with _asked() as bucket, os.fdopen(handle, "wb") as file:
            name = object_name(team_id=team_id, sha256=sha256)
            if not bucket.exists(name):
                return False
            found = hashlib.sha256()
            with bucket.open(name, "rb") as stored:
                for piece in iter(lambda: stored.read(CHUNK_BYTES), b""):
                    found.update(piece)
                    file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if found.hexdigest() != sha256:
            raise Away(f"The bucket's file {sha256[:12]}… has another content than its name says.", code="damaged")
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(draft, target)
        return True
    finally:
        Path(draft).unlink(missing_ok=True)


def delete_file(*, team_id: int, sha256: str) -> None:
    """Removes a file that nothing names any more. Raises Away."""
    if is_configured():
        with _asked() as bucket:
            bucket.delete(object_name(team_id=team_id, sha256=sha256))


def object_name(*, team_id: int, sha256: str) -> str:
    return f"{team_id}/{sha256[:2]}/{sha256}"


@contextmanager
def _asked() -> Iterator[Storage]:
    """The bucket; what its client library raises becomes one sentence."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield storages[ALIAS]
    except (BotoCoreError, ClientError) as problem:
        raise Away(
            f"The farm's bucket rejected a request: {problem}",
            code="bucket_away",
            hint="Try again; if it persists, the administrator should check ONNXFARM_BUCKET and its keys.",
        ) from problem
