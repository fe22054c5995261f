"""A seeded farm on PostgreSQL made larger inside the server: its finished runs again and again, under other numbers.

`python -m tests.bench.seeded.growth FOLDER --times N` fills the cluster that `tests.bench.pages --postgres --keep
FOLDER` seeded, until there are N times as many measurements or a file FOLDER/stop is there. Nothing goes over a wire:
each table is one INSERT … SELECT a copy, in which a row's own number and those of its parents are as much higher as the
table's numbers reach. A copy keeps its times, so that a farm N times as large has had N times as much to measure in the
same half year.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.seeded import farm
from tests.options import read_options
from tests.postgres import SKIPPED, Cluster, NoPostgresError

# what a server of a farm of this size has set: a gigabyte of its own, and no WAL that nobody replays
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "2GB", "wal_level": "minimal", "max_wal_senders": "0"}
# made-up numbers of blocks in the A/A history, which no table has
FAR = 10**10


def kept_cluster(folder: Path) -> Cluster:
    """The cluster of a farm that is kept in this folder. It lies beside it: a farm's folder is its owner's alone."""
    folder = folder.resolve()
    return Cluster(keep=folder.with_name(f"{folder.name}-postgres"), settings=SETTINGS)


class Growth:
    """Copies of a farm's finished runs. Make it once the farm was seeded."""

    def __init__(self) -> None:
        from farm.fleet.models import NullEstimate
        from farm.runs.models import Arm, Attempt, Block, Cell, CellDocument, Comparison, Event, Report, Run

        # parents first
        self._tables = (Run, Cell, Block, Arm, Attempt, Report, Event, CellDocument, Comparison, NullEstimate)
        finished = f"SELECT id FROM {Run._meta.db_table} WHERE state = 'finished'"
        blocks = f"SELECT id FROM {Block._meta.db_table} WHERE run_id IN ({finished})"
        arms = f"SELECT id FROM {Arm._meta.db_table} WHERE block_id IN ({blocks})"
        attempts = f"SELECT id FROM {Attempt._meta.db_table} WHERE block_id IN ({blocks})"
        self._which: Mapping[Any, str] = {
            Run: "state = 'finished'",
            Cell: f"run_id IN ({finished})",
            Block: f"run_id IN ({finished})",
            Arm: f"block_id IN ({blocks})",
            Attempt: f"block_id IN ({blocks})",
            Report: f"attempt_id IN ({attempts})",
            Event: f"run_id IN ({finished})",
            CellDocument: f"arm_id IN ({arms})",
            Comparison: f"run_id IN ({finished})",
            NullEstimate: "true",
        }

    def statements(self, copy: int, last: Mapping[str, int]) -> Iterator[str]:
        """The INSERTs of one copy; `last`: the highest number that each table was seeded with."""
        for model in self._tables:
            table = model._meta.db_table
            fields = model._meta.concrete_fields
            columns = ", ".join(f'"{field.column}"' for field in fields)
            values = ", ".join(self._value(field, copy, last) for field in fields)
            chosen = f"id <= {last[table]} AND {self._which[model]}"
            yield f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} WHERE {chosen} ORDER BY id"

    def _value(self, field: Any, copy: int, last: Mapping[str, int]) -> str:
        column, table = f'"{field.column}"', field.model._meta.db_table
        if field.primary_key:
            return f"{column} + {copy * last[table]}"
        if field.remote_field is not None and field.remote_field.model in self._tables:
            return f"{column} + {copy * last[field.remote_field.model._meta.db_table]}"
        if field.name == "token_digest":
            return f"encode(sha256(convert_to({column} || '{copy}', 'UTF8')), 'hex')"
        if table == "fleet_nullestimate" and field.name == "block":
            return f"{column} + {copy * FAR}"
        return column

    def last(self) -> dict[str, int]:
        from django.db.models import Max

        return {one._meta.db_table: one._default_manager.aggregate(last=Max("pk"))["last"] or 0 for one in self._tables}


def grow(home: Path, *, times: int) -> dict[str, Any]:
    """Adds copies until there are so many of everything, the seeded ones included. Goes on where it was ended."""
    from django.db import connection

    note = home / "grown.json"
    growth = Growth()
    told = json.loads(note.read_text()) if note.exists() else {"copies": 0, "last": growth.last(), "seconds": 0.0}
    for copy in range(told["copies"] + 1, times):
        began = time.monotonic()
        with connection.cursor() as cursor:
            # foreign keys are those of the seeded rows, moved
            cursor.execute("SET session_replication_role = replica")
            cursor.execute("BEGIN")
            for statement in growth.statements(copy, told["last"]):
                cursor.execute(statement)
            cursor.execute("COMMIT")
        told |= {"copies": copy, "seconds": told["seconds"] + time.monotonic() - began}
        note.write_text(json.dumps(told))
        sys.stderr.write(f"copy {copy}: {time.monotonic() - began:.0f} s\n")
        if (home / "stop").exists():
            break
    _finish(told["last"])
    return dict(told)


def _finish(tables: Mapping[str, int]) -> None:
    """Sequences behind the new rows, and what autovacuum does within minutes of such a change."""
    from django.db import connection

    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")
            cursor.execute(f"VACUUM (ANALYZE, INDEX_CLEANUP OFF) {table}")


def main() -> int:
    words = read_options(__doc__, "folder", required=("times",), times=int)
    try:
        with kept_cluster(words.folder) as cluster:
            farm.use(words.folder, database_url=cluster.url)
            from django.db import connections

            told = grow(words.folder, times=words.times)
            connections.close_all()
    except NoPostgresError as problem:
        sys.stderr.write(f"skipped: {problem}\n")
        return SKIPPED
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
