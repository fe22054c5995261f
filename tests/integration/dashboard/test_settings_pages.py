"""Tokens, and signing in and out."""

import re

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.accounts.services import issue_token, make_sign_in_link
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db


def test_a_token_is_shown_once_and_can_be_closed(signed_in: Client, owner: User) -> None:
    words = assert_is_page(signed_in.post("/settings/tokens/", {"name": "laptop", "scopes": ["read", "write"]}))
    assert "ofk_" in words
    token = owner.tokens.get()
    listed = assert_is_page(signed_in.get("/settings/"))
    assert "laptop" in listed
    assert len(re.findall(r"ofk_\w{20,}", listed)) == 0
    closed = assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/", follow=True))
    assert "opens nothing any more" in closed


def test_a_token_without_a_scope_keeps_its_name(signed_in: Client) -> None:
    response = signed_in.post("/settings/tokens/", {"name": "laptop"})
    assert response.status_code == 400
    assert 'value="laptop"' in response.content.decode()
    assert "Unknown scope" in assert_is_page(response, 400)


def test_nobody_closes_anothers_token(signed_in: Client, member: User) -> None:
    token, _ = issue_token(member)
    assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/"), 404)
    token.refresh_from_db()
    assert token.revoked_at is None


def test_a_one_time_link_signs_in_once_and_goes_where_it_was_wanted(client: Client, owner: User) -> None:
    link = make_sign_in_link(owner)
    path = link[link.index("/sign-in/") :]
    assert client.head(path).status_code == 405
    response = client.get(f"{path}?next=/fleet/")
    assert response["Location"] == "/fleet/"
    assert client.get("/fleet/").status_code == 200
    assert_is_page(Client().get(path), 403)
    assert client.get(path)["Location"] == "/"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_link_never_leads_away_from_the_farm(client: Client, owner: User, wanted: str) -> None:
    link = make_sign_in_link(owner)
    response = client.get(link[link.index("/sign-in/") :], {"next": wanted})
    assert response["Location"] == "/"


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    assert signed_in.get("/sign-in/?next=/runs/")["Location"] == "/runs/"
    assert signed_in.post("/sign-out/")["Location"] == "/sign-in/"
    assert_is_page(signed_in.get("/sign-in/"))
    assert signed_in.get("/").status_code == 302
