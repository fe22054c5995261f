"""A farm in one file, and the same farm again: on SQLite, on PostgreSQL, and refused where it cannot be the same."""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from farm.accounts.models import LinkedAccount, Team, Tick
from farm.accounts.states import Role
from farm.backups import archive, database
from farm.backups.archive import ArchiveReader, ArchiveWriter
from farm.backups.creation import BackupResult, make_backup
from farm.backups.problems import BackupError
from farm.backups.restoration import RestorePaths, restore_backup
from farm.registry import storage
from farm.registry.models import Blob
from farm.runs.models import Run
from farm.runs.selectors import documents
from tests.conftest import PROJECT, make_user
from tests.integration.access.world import World
from tests.postgres import Cluster, NoPostgresError

IDENTITY = b'{"node_id": "1"}'
# what a restored farm says, in a process of its own
SAYING = """
import django, sys; django.setup()
from pathlib import Path
from farm.backups.creation import make_backup
from farm.runs.models import Run
from farm.runs.selectors import documents
make_backup(Path(sys.argv[1]))
folder = Path(sys.argv[2]); folder.mkdir()
for run in Run.objects.all(): (folder / str(run.pk)).write_text(documents.document_json(run))
"""


@pytest.fixture
def world(transactional_db: None) -> World:
    from farm.accounts.states import Role

    team, elsewhere = Team.objects.create(name="vision"), Team.objects.create(name="elsewhere")
    people = {"owner": make_user("owner", team=team, role=Role.ADMIN)}
    people["stranger"] = make_user("stranger", team=elsewhere, role=Role.ADMIN)
    return World(team=team, people=people)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    try:
        with Cluster() as started:
            yield started
    except NoPostgresError as problem:
        pytest.skip(str(problem))


def with_whole_files() -> None:
    """The fixtures name files by digests of their own: here each is what it is named by."""
    for blob in Blob.objects.all():
        draft = storage.Draft("a file")
        draft.write(f"file {blob.pk}".encode())
        draft.seal()
        draft.keep(team_id=blob.team_id)
        draft.discard()
        Blob.objects.filter(pk=blob.pk).update(sha256=draft.sha256)


def taken(folder: Path) -> tuple[Path, BackupResult]:
    (identity := folder / "node.json").write_bytes(IDENTITY)
    return folder / "farm.backup", make_backup(folder / "farm.backup", node_identity=identity)


def restored(backup: Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`onnxfarm farm restore` in a home of its own."""
    words = [sys.executable, "-m", "onnxfarm.main", "farm", "restore", str(backup), "--home", str(home)]
    return subprocess.run(words, cwd=PROJECT, env=bare(home) | environment, check=False, capture_output=True, text=True)


def said(home: Path, folder: Path, **environment: str) -> tuple[Path, dict[str, str]]:
    """Another backup of a restored farm, and its documents by run."""
    folder.mkdir()
    words = [sys.executable, "-c", SAYING, str(folder / "again.backup"), str(folder / "documents")]
    subprocess.run(words, cwd=PROJECT, env=bare(home) | environment, check=True)
    return folder / "again.backup", {path.name: path.read_text() for path in (folder / "documents").iterdir()}


def bare(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ONNXFARM_")}
    return kept | {"ONNXFARM_HOME": str(home), "DJANGO_SETTINGS_MODULE": "farm.config.settings"}


def contents(backup: Path) -> dict[str, Any]:
    """Its tables as values, as PostgreSQL keeps a JSON object's names in an order of its own, and its other files."""
    with tarfile.open(backup) as tar:
        read = {info.name: tar.extractfile(info).read() for info in tar}
    left = {name: content for name, content in read.items() if name not in (archive.HEAD, archive.TAIL, archive.NODE)}
    return {
        name: [json.loads(line) for line in gzip.decompress(content).splitlines()] if name.endswith(".gz") else content
        for name, content in left.items()
    }


def test_a_restored_farm_says_the_same_byte_by_byte(world: World, settings: Settings, tmp_path: Path) -> None:
    with_whole_files()
    Team.objects.create(name="gone").delete()
    before = {run.pk: documents.document_json(run) for run in Run.objects.all()}
    backup, made = taken(tmp_path)
    assert (made.missing, made.damaged) == ([], [])
    assert made.files == Blob.objects.count()
    paths = RestorePaths(tmp_path / "secret_key", tmp_path / "node" / "node.json")
    with pytest.raises(BackupError, match="This farm is not empty: its table"):
        restore_backup(backup, paths=paths)

    call_command("flush", interactive=False, verbosity=0)
    settings.STORE_DIR = tmp_path / "another"
    done = restore_backup(backup, paths=paths)
    assert (done.rows, done.files, done.left_out) == (made.rows, made.files, [])
    assert paths.key.read_text() == settings.SECRET_KEY
    assert paths.node_identity.read_bytes() == IDENTITY
    after = {run.pk: documents.document_json(run) for run in Run.objects.all()}
    assert len(after) > 1
    assert after == before
    make_backup(tmp_path / "again.backup")
    assert contents(tmp_path / "again.backup") == contents(backup)
    # the number of the team that is gone is given to nobody
    assert head_of(tmp_path / "again.backup")["counters"] == head_of(backup)["counters"]


# columns of tables that came after the release before
LATER = {"accounts.team": ("puts_people_first", "daily_minutes"), "accounts.token": ("team", "team_id")}


def without(table: bytes, names: tuple[str, ...]) -> bytes:
    """The rows of a table as they were before these columns."""
    head, *rows = (json.loads(line) for line in gzip.decompress(table).splitlines())
    kept = [place for place, name in enumerate(head["columns"]) if name not in names]
    lines = [{"columns": [head["columns"][place] for place in kept]}, *([row[place] for place in kept] for row in rows)]
    return gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def of_the_release_before(backup: Path, path: Path) -> None:
    """The same backup as a farm with django-allauth would have written it."""
    with tarfile.open(backup) as tar, ArchiveWriter(path) as writing:
        for info in tar:
            if info.name == archive.TAIL:
                continue
            content = tar.extractfile(info).read()
            if info.name == archive.HEAD:
                head = json.loads(content)
                later = [pair for pair in head["migrations"] if pair[0] == "accounts" and pair[1] > "0002"]
                head["migrations"] = [pair for pair in head["migrations"] if pair not in later]
                head["migrations"] += [["account", "0001_initial"], ["socialaccount", "0001_initial"]]
                content = json.dumps(head).encode()
            for label, names in LATER.items():
                if info.name == archive.name_table_member(label):
                    content = without(content, names)
            writing.add(info.name.replace("accounts.linkedaccount", database.OLD_LINKED_LABEL), content)
        for label in ("account.emailaddress", "socialaccount.socialtoken"):
            writing.add(archive.name_table_member(label), gzip.compress(b'{"columns": ["id"]}\n'))


def test_people_of_an_identity_provider_come_with_a_backup_of_the_release_before(
    transactional_db: None, tmp_path: Path
) -> None:
    ada = make_user("ada", team=Team.objects.create(name="vision"), role=Role.MEMBER)
    LinkedAccount.objects.create(provider="openid-1", uid="u-1", user=ada)
    backup, _ = taken(tmp_path)
    of_the_release_before(backup, tmp_path / "before.backup")
    done = restored(tmp_path / "before.backup", tmp_path / "home")
    assert done.returncode == 0, done.stderr
    again, _ = said(tmp_path / "home", tmp_path / "said")
    table = archive.name_table_member("accounts.linkedaccount")
    assert contents(again)[table] == contents(backup)[table]
    assert len(contents(again)[table]) == 2


@pytest.mark.long
def test_a_farm_moves_to_a_new_folder_to_postgresql_and_back(world: World, cluster: Cluster, tmp_path: Path) -> None:
    # as every farm has them; where tests before this one emptied the tables, none came back (tests/conftest.py)
    for app in apps.get_app_configs():
        create_permissions(app, verbosity=0)
    with_whole_files()
    before = {str(run.pk): documents.document_json(run) for run in Run.objects.all()}
    backup, made = taken(tmp_path)
    known, came_from = (contents(backup), head_of(backup)["counters"]), backup
    for name, environment in (("new", {}), ("moved", {"ONNXFARM_DATABASE_URL": cluster.url}), ("back", {})):
        home = tmp_path / name
        done = restored(came_from, home, **environment)
        assert done.returncode == 0, done.stderr
        assert f"Restored {made.rows:,} rows and {made.files:,} files" in done.stdout
        assert f"writes a new one to {home / 'token'}." in done.stdout
        assert (home / "secret_key").read_text() == settings.SECRET_KEY
        came_from, after = said(home, tmp_path / f"{name}-said", **environment)
        # PostgreSQL keeps the names of a JSON object in an order of its own, and a run without an end is told from them
        assert after == before or {pk: json.loads(text) for pk, text in after.items()} == {
            pk: json.loads(text) for pk, text in before.items()
        }
        assert (contents(came_from), head_of(came_from)["counters"]) == known
    refused = restored(backup, tmp_path / "new")
    assert refused.returncode == 3
    assert "This farm is not empty" in refused.stderr


def head_of(backup: Path) -> dict[str, Any]:
    reading = ArchiveReader(backup)
    reading.check()
    return reading.head


def test_files_that_are_gone_or_damaged_are_named(transactional_db: None, team: Team, tmp_path: Path) -> None:
    first, second, _ = [team.blobs.create(sha256=str(number) * 64, bytes=6) for number in range(3)]
    with_whole_files()
    first.refresh_from_db()
    second.refresh_from_db()
    storage.blob_path(team_id=first.team_id, sha256=first.sha256).unlink()
    storage.blob_path(team_id=second.team_id, sha256=second.sha256).write_bytes(b"other bytes")
    backup, made = taken(tmp_path)
    assert made.missing == [archive.name_stored_member(team_id=first.team_id, sha256=first.sha256)]
    assert made.damaged == [archive.name_stored_member(team_id=second.team_id, sha256=second.sha256)]
    reading = ArchiveReader(backup)
    reading.check()
    assert reading.list_left_out() == made.missing + made.damaged


def test_what_others_write_meanwhile_is_not_in_it(transactional_db: None, team: Team) -> None:
    def write() -> None:
        Team.objects.create(name="meanwhile")
        connection.close()

    with database.read_in_snapshot():
        before = Team.objects.count()
        other = threading.Thread(target=write)
        other.start()
        other.join()
        assert Team.objects.count() == before
    assert Team.objects.count() == before + 1


def _head(**changes: object) -> bytes:
    return json.dumps({"format": archive.FORMAT, "migrations": database.applied_migrations()} | changes).encode()


@pytest.mark.parametrize(
    ("changes", "fixed_key", "sentence"),
    [
        ({"format": 2}, "", "has the backup format 2, and this release reads 1"),
        ({"migrations": [["runs", "9999_later"]]}, "", "is of a newer release: it has the migration runs.9999_later"),
        (
            {"migrations": [["accounts", "0001_tables"]]},
            "",
            "which the backup does not have",
        ),
        ({"migrations": [["accounts", "0001_initial"]]}, "", "before 25 November 2026"),
        ({"migrations": "all"}, "", "it names no migrations"),
        ({}, "another", "ONNXFARM_SECRET_KEY names another key than the backup's"),
    ],
)
def test_a_backup_that_cannot_become_this_farm_is_refused(
    db: None, tmp_path: Path, changes: dict[str, object], fixed_key: str, sentence: str
) -> None:
    path = tmp_path / "farm.backup"
    with ArchiveWriter(path) as writing:
        writing.add(archive.HEAD, _head(**changes))
        writing.add(archive.KEY, b"key")
    with pytest.raises(BackupError, match=sentence):
        restore_backup(path, paths=RestorePaths(tmp_path / "secret_key", tmp_path / "node.json", fixed_key=fixed_key))
    assert not (tmp_path / "secret_key").exists()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([{"columns": ["name"]}], "its columns are name, the model's name, ended_at, took_s"),
        ([{"columns": ["name", "ended_at", "took_s"]}, ["beat", "no moment", 1.0]], "cannot be read, after 0 of them"),
        ([{"columns": ["name", "ended_at", "took_s"]}, ["beat"]], "a row has 1 values for 3 columns"),
        ([{"columns": ["name", "ended_at", "took_s"]}, ["beat", None, 1.0]], "This database refuses the backup's rows"),
        (
            [{"columns": ["name", "ended_at", "took_s"]}, *[["beat", "2026-11-26T00:00:00Z", 1.0]] * 2],
            "Does a farm still write here. End it, move its folder away",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_none_is_kept(
    transactional_db: None, tmp_path: Path, lines: list[object], sentence: str
) -> None:
    path = tmp_path / "farm.backup"
    rows = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    with ArchiveWriter(path) as writing:
        writing.add(archive.HEAD, _head())
        writing.add(archive.KEY, b"key")
        writing.add(archive.name_table_member("accounts.tick"), gzip.compress(rows))
    with pytest.raises(BackupError, match=sentence):
        restore_backup(path, paths=RestorePaths(tmp_path / "secret_key", tmp_path / "node.json"))
    assert not Tick.objects.exists()
