"""The page of a run, from its first second to its verdict."""

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from tests.integration.dashboard import rows

pytestmark = pytest.mark.django_db


def test_a_finished_run_opens_with_who_is_slower_by_how_much_how_sure_and_through_what(
    owner: User, team: Team, client: Client
) -> None:
    run = rows.finished_run(rows.make_version(team, owner), rows.make_node(team, owner), owner)
    client.force_login(owner)
    response = client.get(f"/runs/{run.pk}/")
    text = response.content.decode()
    print(text[:6000])
    assert response.status_code == 200
