"""Takes a backup of a farm while the farm works."""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.utils import timezone

from farm.accounts.services import record
from farm.accounts.states import BACKED_UP
from farm.backups import archive, database, tables
from farm.backups.archive import ArchiveWriter, StoredFile
from farm.backups.problems import BackupError
from farm.base.refusals import Away
from farm.registry import storage
from farm.registry.models import Blob, WebRuntime


@dataclass
class BackupResult:
    """The content of a backup: how many rows and files (damaged ones too), and the size of the backup in bytes."""

    rows: int = 0
    files: int = 0
    bytes: int = 0
    # files that the database names and that are not in the store, or are damaged there
    missing: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def make_backup(path: Path, *, node_identity: Path | None = None) -> BackupResult:
    """Write the database as it is at one moment, and every file that it names, to `path`; log it in the audit log.

    Files that are missing from the store, or damaged there, are no error: the result names them, and damaged ones are
    in the backup as they are. The secret key is in it too. `node_identity` is the identity file of the node on the
    farm's machine; it is added if it exists. Raises BackupError where the database is not migrated, the file exists or
    cannot be written, or the store does not answer.
    """
    result = BackupResult()
    with ArchiveWriter(path) as writing:
        with database.read_in_snapshot():
            writing.add(archive.HEAD, json.dumps(_make_head()).encode())
            _add_tables(writing, result)
            files = sorted(_list_files())
        writing.add(archive.KEY, settings.SECRET_KEY.encode())
        if node_identity is not None and node_identity.is_file():
            writing.add(archive.NODE, node_identity.read_bytes())
        for file in files:
            _add_file(writing, result, file)
        left_out = {"missing": result.missing, "damaged": result.damaged}
        writing.add(archive.LEFT_OUT, json.dumps(left_out).encode())
    result.bytes = path.stat().st_size
    record(verb=BACKED_UP, facts={"rows": result.rows, "files": result.files, "bytes": result.bytes})
    return result


def _make_head() -> dict[str, object]:
    return {
        "format": archive.FORMAT,
        "taken_at": timezone.now().isoformat(timespec="seconds"),
        "database": connection.vendor,
        "migrations": database.applied_migrations(),
        "counters": database.read_id_counters(),
    }


def _add_tables(writing: ArchiveWriter, result: BackupResult) -> None:
    for model in database.list_models():
        with tempfile.TemporaryFile(dir=writing.path.parent) as draft:
            result.rows += tables.write_rows(model, draft)
            size = draft.tell()
            draft.seek(0)
            writing.add_stream(archive.name_table_member(model._meta.label_lower), draft, size=size)


def _list_files() -> Iterator[StoredFile]:
    """Yield every file that a row names."""
    yield from map(StoredFile._make, Blob.objects.filter(swept_at=None).order_by().values_list("team_id", "sha256"))
    shared = {file.sha256 for runtime in WebRuntime.objects.all() for file in runtime.files}
    yield from (StoredFile(storage.OF_THE_FARM, sha256) for sha256 in shared)


def _add_file(writing: ArchiveWriter, result: BackupResult, file: StoredFile) -> None:
    member = archive.name_stored_member(team_id=file.team_id, sha256=file.sha256)
    try:
        source = storage.fetch_blob(team_id=file.team_id, sha256=file.sha256).open("rb")
    except FileNotFoundError:
        result.missing.append(member)
        return
    except Away as problem:
        raise BackupError(str(problem)) from problem
    with source:
        stored_sha256 = writing.add_stream(member, source, size=os.fstat(source.fileno()).st_size)
    result.files += 1
    if stored_sha256 != file.sha256:
        result.damaged.append(member)
