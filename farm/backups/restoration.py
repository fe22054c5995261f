"""Restores a backup into a farm that is still empty."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import Model
from pydantic import TypeAdapter, ValidationError

from farm.backups import archive, database, tables
from farm.backups.archive import ArchiveReader, StoredFile
from farm.backups.problems import BackupError
from farm.base.refusals import Refusal
from farm.registry import storage

_MIGRATIONS: TypeAdapter[database.Migrations] = TypeAdapter(database.Migrations)


@dataclass
class RestoreResult:
    """What was restored. `left_out` names the files that were missing from the backup itself, or damaged in it."""

    taken_at: str
    rows: int = 0
    files: int = 0
    left_out: list[str] = field(default_factory=list)


@dataclass
class RestorePaths:
    """Where the secret key and the identity of the farm's own node are written.

    `fixed_key` is the secret key that the environment sets; the backup's key is then not written.
    """

    key: Path
    node_identity: Path
    fixed_key: str = ""


def restore_backup(path: Path, *, paths: RestorePaths) -> RestoreResult:
    """Read the whole backup once to check it, then restore tables, rows and files, and last the secret key and the
    identity of the farm's own node.

    Files that were damaged when the backup was taken are not restored. A backup of an earlier release is migrated to
    this one at the end.

    Raises BackupError for a damaged or unknown backup, a farm that is not empty, a key that the environment sets and
    that differs, a node's identity that is there already, too little space, and rows that the database refuses. The
    database is then left without rows of the backup; tables and files that were written before stay.
    """
    reading = ArchiveReader(path)
    reading.check()
    migrations = _read_migrations(reading)
    _check_same_farm(reading, paths)
    database.check_database_is_empty()
    database.check_migrations_are_known(migrations)
    try:
        storage.check_free_space(bytes_wanted=reading.stored_bytes)
    except Refusal as problem:
        raise BackupError(str(problem)) from problem
    models = database.migrate_to(migrations)
    restored = RestoreResult(str(reading.head.get("taken_at", "")), left_out=reading.list_left_out())
    try:
        with transaction.atomic():
            database.delete_initial_rows()
            for member, source in reading.iterate_members():
                _restore_member(member, source, models, restored)
            database.set_id_counters(reading.head.get("counters") or {})
    except IntegrityError as problem:
        raise BackupError(f"Rows of the backup contradict one another; nothing was restored: {problem}") from problem
    if not paths.fixed_key:
        _write_private(paths.key, reading.small_members[archive.KEY])
    if archive.NODE in reading.small_members:
        paths.node_identity.parent.mkdir(parents=True, exist_ok=True)
        _write_private(paths.node_identity, reading.small_members[archive.NODE])
    call_command("migrate", interactive=False, verbosity=0)
    return restored


def _read_migrations(reading: ArchiveReader) -> database.Migrations:
    """Return the migrations that made the backup's tables.

    Raises BackupError for a format that this release does not read.
    """
    version = reading.head.get("format")
    if version != archive.FORMAT:
        raise BackupError(
            f"{reading.path} has the backup format {version!r}, and this release reads {archive.FORMAT}: install the "
            f"release that took it, or a newer one."
        )
    try:
        migrations = _MIGRATIONS.validate_python(reading.head.get("migrations"))
    except ValidationError:
        migrations = []
    if not migrations or archive.KEY not in reading.small_members:
        raise BackupError(f"{reading.path} is not a backup of a farm: it names no migrations, or has no key.")
    return [(app, name) for app, name in migrations if app not in database.GONE_APPS]


def _check_same_farm(reading: ArchiveReader, paths: RestorePaths) -> None:
    """Raises BackupError where a node or a secret key is there already that differs from the backup's."""
    if paths.node_identity.exists():
        raise BackupError(
            f"This farm is not empty: {paths.node_identity} is the identity of its node. Restore into a new folder."
        )
    if paths.fixed_key and paths.fixed_key.encode() != reading.small_members[archive.KEY]:
        raise BackupError(
            "ONNXFARM_SECRET_KEY names another key than the backup's, so that its badges and sessions would be void: "
            "unset it, and the backup's key is kept in the farm's folder."
        )


def _restore_member(member: str, source: IO[bytes], models: dict[str, type[Model]], restored: RestoreResult) -> None:
    label, stored = archive.parse_table_member(member), archive.parse_stored_member(member)
    if label is not None:
        if label not in models and label.partition(".")[0] in database.GONE_APPS:
            return
        if label not in models:
            raise BackupError(f"The backup has rows of {label}, which its own migrations do not make.")
        restored.rows += tables.insert_rows(models[label], source)
    elif stored is not None and member not in restored.left_out:
        _store_file(source, stored)
        restored.files += 1


def _store_file(source: IO[bytes], file: StoredFile) -> None:
    """Write a file into the store, whole or not at all."""
    draft = storage.Draft(file.sha256, limit_bytes=archive.MAX_SMALL_BYTES << 10)
    try:
        while chunk := source.read(archive.COPY_BYTES):
            draft.write(chunk)
        draft.seal()
        if draft.sha256 != file.sha256:
            raise BackupError(f"The backup's file {file.sha256[:12]}… has another content than its name says.")
        draft.keep(team_id=file.team_id)
    except Refusal as problem:
        raise BackupError(str(problem)) from problem
    finally:
        draft.discard()


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    draft = path.with_name(f"{path.name}.part")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
