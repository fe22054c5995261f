"""Whatever a node sends: answered in words and with nothing about the machine; no row changed where it is refused.

No page of the farm breaks by what is taken.

    ONNXFARM_FUZZ_BODIES=5000 python -m pytest tests/integration/node_api/test_any_body.py -s

makes as many as `bash deploy/test --long node-bodies`. Bodies come from the contract's own types, valid and then spoilt
in places; addresses, tokens and secrets are those of the farm, of others, or of nobody. Every request meets the same
farm: what it changes is undone.
"""

import json
import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.apps import apps
from django.conf import settings
from django.core.signals import request_finished
from django.db import close_old_connections, connection, transaction

from farm.accounts.models import Team, User
from tests.conftest import PROJECT
from tests.integration.node_api.anything import Farm, Request, requests
from tests.integration.node_api.test_bad_input import LOGS, everything

REQUESTS = int(os.environ.get("ONNXFARM_FUZZ_BODIES", "60"))
SEED = int(os.environ.get("ONNXFARM_FUZZ_SEED", "1"))
TIMEOUT_S = 300 if REQUESTS <= 300 else 3600
# what would tell a node where the farm lies: its folders, Python's, and the lines of a stack trace
PLACES = re.compile(
    "|".join(
        map(
            re.escape,
            (str(PROJECT), str(settings.HOME), sys.prefix, sys.base_prefix + "/lib", tempfile.gettempdir() + "/"),
        )
    )
    + r"|Traceback|site-packages|\.py\b"
)

WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b")
LOG_TABLES = [f'"{model._meta.db_table}"' for model in apps.get_models() if model.__name__ in LOGS]


@pytest.fixture
def farm(team: Team, owner: User, member: User, stranger: User) -> Farm:
    return Farm(team=team, owner=owner, member=member, stranger=stranger)


class Looker:
    """Sends requests to a farm that none of them changes, and says what is wrong with an answer."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._rows, self._files = everything(), _files()
        self._writes = 0

    def status_and_wrongs(self, request: Request) -> tuple[int, list[str]]:
        with transaction.atomic():
            # else the end of a request would close the connection, and the transaction with it
            request_finished.disconnect(close_old_connections)
            self._writes = 0
            with connection.execute_wrapper(self._counted):
                status, kind, content = self._farm.send(request)
            wrongs = _wrong_with(status, kind, content)
            wrongs += self._changed() if status >= 400 else self._unreadable(request)
            request_finished.connect(close_old_connections)
            transaction.set_rollback(True)
        for path in _files() - self._files:
            path.unlink()
        return status, wrongs

    def _unreadable(self, request: Request) -> list[str]:
        """Pages and documents that what was accepted has broken."""
        return [f"broke {address}" for address, status in self._farm.read(request.place) if status >= 500]

    def _counted(self, execute: Any, sql: str, *given: Any) -> Any:
        """Counts what is written to any table but those of the logs, whether it is taken back or not."""
        self._writes += WRITES.match(sql) is not None and not any(table in sql for table in LOG_TABLES)
        return execute(sql, *given)

    def _changed(self) -> list[str]:
        after = everything() if self._writes else self._rows
        tables = [f"changed {name}" for name, rows in self._rows.items() if after[name] != rows]
        return tables + [f"left {len(_files() - self._files)} files"] * (not _files() <= self._files)


def _files() -> set[Path]:
    return {path for path in Path(settings.STORE_DIR).rglob("*") if path.is_file()}


def _wrong_with(status: int, kind: str, content: bytes) -> list[str]:
    if status >= 500:
        return [f"answered {status}"]
    if not kind.startswith("application/json"):
        return [] if status < 400 else [f"answered {status} as {kind}"]
    found = PLACES.search(content.decode())
    wrongs = [f"told {found[0]!r}"] if found else []
    if status >= 400:
        body = json.loads(content)
        is_said = set(body) <= {"detail", "code", "hint"} and body.get("code") and str(body["detail"]).endswith(".")
        wrongs += [] if is_said else [f"answered {status} without a sentence"]
    return wrongs


@pytest.mark.django_db
@pytest.mark.timeout(TIMEOUT_S)
def test_no_body_of_a_node_breaks_the_farm_tells_its_places_or_changes_a_row_when_refused(farm: Farm) -> None:
    looker = Looker(farm)
    answered: Counter[str] = Counter()
    # the shortest request of each kind of wrong
    wrong: dict[str, Request] = {}

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=REQUESTS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(requests(farm))
    def answers(request: Request) -> None:
        status, wrongs = looker.status_and_wrongs(request)
        answered[f"{status}"] += 1
        for problem in wrongs:
            place = f"{request.method} {request.place}: {problem}"
            wrong[place] = min(request, wrong.get(place, request), key=lambda one: len(repr(one)))

    answers()
    print(json.dumps({"requests": answered.total(), "seed": SEED, **dict(sorted(answered.items()))}))
    assert not wrong, "\n".join(f"{place}\n    {request!r}" for place, request in wrong.items())
    # real and broken ones both reach their ends
    assert answered["200"]
    assert answered["422"]
