"""What a farm says of its runs, alerts and models: documents, CSV and API byte by byte, pages in words.

`python recording.py DUMP FILE` loads the dump into the empty database of a farm's home, migrates it, and writes the
recording to FILE. It runs with this code and, called by make.py, with that of an older commit: only what both have is
used.
"""

import gzip
import html
import json
import os
import re
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

BADGE = re.compile(r"/badges/\d+/[0-9a-f]+\.svg")
NOW = datetime(2026, 11, 26, 16, tzinfo=UTC)
# what only keeps a part of a sentence on one line
UNBROKEN = re.compile(r'<span class="nowrap">([^<]*)</span>')
MARKUP = re.compile(r"<(script|style|svg|head)[^>]*>.*?</\1>|<[^>]+>", re.DOTALL)


def set_up() -> None:
    """Django with the farm's own settings, at a moment that stands still for whoever reads."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "farm.config.settings", "ONNXFARM_LOG_LEVEL": "CRITICAL"}
    import django

    django.setup()


def record() -> str:
    """Each address with what it answers."""
    from django.test import Client
    from django.utils import timezone

    from farm.accounts.models import User
    from farm.accounts.services import issue_token
    from farm.accounts.states import Scope
    from farm.runs.models import Run
    from farm.runs.selectors.documents import make_document

    owner = User.objects.get(username="owner")
    _, secret = issue_token(owner, [Scope.READ], name="recording")
    browser = Client(headers={"host": "localhost"})
    browser.force_login(owner)
    api = Client(headers={"host": "localhost", "authorization": f"Bearer {secret}"})
    timezone.now = lambda: NOW
    found = {address: answer(api, address).decode() for address in addresses()}
    found |= {address: words(answer(browser, address)) for address in pages()}
    found |= {f"rows of run {run.pk}": make_document(run).to_json() for run in Run.objects.order_by("pk")}
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)


def answer(client, address: str) -> bytes:
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code, response.content[:500])
    return b"".join(response.streaming_content) if response.streaming else response.content


def words(page: bytes) -> str:
    """The visible words of a page, a line each."""
    text = html.unescape(MARKUP.sub("\n", UNBROKEN.sub(r"\1", page.decode()))).replace("\N{NO-BREAK SPACE}", " ")
    # its key comes from the secret of each farm
    text = BADGE.sub("/badges/N/KEY.svg", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def addresses() -> list[str]:
    from farm.alerts.models import Alert, Watch
    from farm.runs.models import Run

    runs = [f"/api/v1/runs/{pk}{rest}" for pk in _all(Run) for rest in ("", "/results", "/results.csv", "/events")]
    alerts = ["/api/v1/alerts", *(f"/api/v1/alerts/{pk}" for pk in _all(Alert))]
    watches = [f"/api/v1/watches/{pk}{rest}" for pk in _all(Watch) for rest in ("", "/rounds", "/points")]
    return [*runs, *alerts, *watches]


def pages() -> list[str]:
    from farm.alerts.models import Alert, Watch
    from farm.registry.models import Model
    from farm.runs.models import Run

    runs = [f"/runs/{pk}/" for pk in _all(Run)]
    # measured, crashed, slower, wrong, judged on labelled data
    cells = [f"/runs/{place}/" for place in ("1/cells/c1", "1/cells/c6", "1/cells/c8", "2/cells/c1", "3/cells/c2")]
    alerts = [f"/alerts/{pk}/" for pk in _all(Alert)]
    watches = [f"/watches/{pk}/" for pk in _all(Watch)]
    # what a page showed first was that of its releases, which has an address of its own now
    runs += [f"/runs/{pk}/?along=runtime" for pk in _all(Run)]
    return [*runs, *cells, *alerts, *watches, *(f"/models/{pk}/" for pk in _all(Model))]


def _all(model) -> list[int]:
    return list(model.objects.order_by("pk").values_list("pk", flat=True))


def main(dump: Path, target: Path) -> None:
    set_up()
    from django.core.management import call_command

    load(gzip.decompress(dump.read_bytes()).decode())
    call_command("migrate", verbosity=0)
    target.write_text(record(), encoding="utf-8")


def load(dump: str) -> None:
    """The rows of the dump in this farm's empty database, whichever that is."""
    from django.db import connection

    is_sqlite = connection.vendor == "sqlite"
    source = sqlite3.connect(connection.settings_dict["NAME"] if is_sqlite else ":memory:")
    source.executescript(dump)
    if is_sqlite:
        source.close()
        return
    from django.db.migrations.executor import MigrationExecutor

    done = source.execute("SELECT app, max(name) FROM django_migrations GROUP BY app").fetchall()
    MigrationExecutor(connection).migrate(done)
    with connection.cursor() as cursor:
        # rows come table by table, whatever refers to what
        cursor.execute("SET session_replication_role = replica")
        for (table,) in source.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%\\_%' ESCAPE '\\'"
        ):
            if table not in ("django_migrations", "sqlite_sequence"):
                _copy(source, cursor, table)
        cursor.execute("SET session_replication_role = DEFAULT")


def _copy(source: sqlite3.Connection, cursor, table: str) -> None:
    read = source.execute(f"SELECT * FROM {table}")
    columns = [column[0] for column in read.description]
    cursor.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", [table])
    kinds = dict(cursor.fetchall())
    named, places = ", ".join(f'"{name}"' for name in columns), ", ".join("%s" for _ in columns)
    for row in read:
        values = [
            bool(value) if kinds[name] == "boolean" and value is not None else value
            for name, value in zip(columns, row, strict=True)
        ]
        cursor.execute(f'INSERT INTO "{table}" ({named}) VALUES ({places})', values)
    if "id" in columns:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM \"{table}\"")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
