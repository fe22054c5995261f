"""An administrator's first day: steps done or not as the farm is, and the sections that others have not."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.models import AuditEvent, Team, User
from farm.accounts.services import create_owner
from farm.accounts.states import BACKED_UP
from farm.backups.creation import make_backup
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> User:
    return create_owner(name="root", team_name="home")


def done(client: Client) -> list[bool]:
    return [step.is_done for step in client.get("/settings/").context["steps"]]


def test_each_step_is_done_when_the_farm_is_so(admin: User, settings: Settings, member: User) -> None:
    client = client_of(admin)
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    assert "0 of 5 steps" in assert_is_page(client.get("/settings/"))
    assert done(client) == [False] * 5
    # typed elsewhere they were of another farm, or began a second one
    commands = [step.command for step in client.get("/settings/").context["steps"][:3]]
    assert all(f" --home {settings.HOME}" in command for command in commands)
    assert f" --home {settings.HOME}" in assert_is_page(client.get("/settings/backup/"))
    settings.PUBLIC_URL, settings.HAS_MAIL, settings.EMAIL_HOST = "https://farm.example", True, "mail.example"
    AuditEvent.objects.create(verb=BACKED_UP)
    User.objects.update(last_login=timezone.now())
    rows.make_node(Team.objects.get(name="home"), admin)
    assert done(client) == [True] * 5
    assert "This farm is set up" in assert_is_page(client.get("/settings/"))


def test_a_node_counts_once_it_is_approved(admin: User) -> None:
    node = rows.make_node(Team.objects.get(name="home"), admin)
    type(node).objects.update(health="pending")
    assert not done(client_of(admin))[4]


@pytest.mark.django_db(transaction=True)
def test_a_backup_is_noted_and_one_of_last_week_is_too_old(admin: User, tmp_path: Path) -> None:
    client = client_of(admin)
    assert "No backup was made yet" in assert_is_page(client.get("/settings/backup/"))
    made = make_backup(tmp_path / "farm.backup")
    event = AuditEvent.objects.get(verb=BACKED_UP)
    assert event.facts == {"rows": made.rows, "files": made.files, "bytes": made.bytes}
    assert "Last backup" in assert_is_page(client.get("/settings/backup/"))
    assert done(client)[2]
    AuditEvent.objects.update(at=timezone.now() - timedelta(days=8))
    assert not done(client)[2]


def test_only_an_administrator_has_the_farm_s_sections(signed_in: Client, admin: User) -> None:
    farm = ("/settings/openid/", "/settings/indexes/", "/settings/backup/")
    assert signed_in.get("/settings/")["Location"] == "/settings/tokens/"
    shown = signed_in.get("/settings/tokens/").content.decode()
    assert not any(address in shown for address in farm)
    shown = client_of(admin).get("/settings/teams/").content.decode()
    assert all(address in shown for address in farm)
    assert '<a href="/settings/teams/" aria-current="page">' in shown
