"""Tokens, and signing in and out."""

import io
import logging
import re
from urllib.parse import urlencode

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.accounts.services import issue_token, make_sign_in_link
from farm.config.logs import RedactingFormatter
from tests.integration.dashboard.pages import assert_is_page

FORM = "application/x-www-form-urlencoded"
pytestmark = pytest.mark.django_db


def test_a_token_is_shown_once_and_can_be_closed(signed_in: Client, owner: User) -> None:
    words = assert_is_page(signed_in.post("/settings/tokens/", {"name": "laptop", "scopes": ["read", "write"]}))
    assert "ofk_" in words
    token = owner.tokens.get()
    listed = assert_is_page(signed_in.get("/settings/tokens/"))
    assert "laptop" in listed
    assert len(re.findall(r"ofk_\w{20,}", listed)) == 0
    closed = assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/", follow=True))
    assert "was revoked" in closed


def test_a_token_without_a_scope_keeps_its_name(signed_in: Client) -> None:
    response = signed_in.post("/settings/tokens/", {"name": "laptop"})
    assert response.status_code == 400
    assert 'value="laptop"' in response.content.decode()
    assert "Unknown scope" in assert_is_page(response, 400)


@pytest.mark.parametrize("days", ["0", "366", "soon", "-1", ""])
def test_a_token_is_valid_for_a_year_at_most(signed_in: Client, owner: User, days: str) -> None:
    response = signed_in.post("/settings/tokens/", {"name": "laptop", "scopes": ["read"], "days": days})
    assert "A token is valid for 1 to 365 days." in assert_is_page(response, 400)
    assert not owner.tokens.exists()


def test_nobody_closes_anothers_token(signed_in: Client, member: User) -> None:
    token, _ = issue_token(member)
    assert_is_page(signed_in.post(f"/settings/tokens/{token.pk}/close/"), 404)
    token.refresh_from_db()
    assert token.revoked_at is None


def path_of_link(user: User) -> str:
    link = make_sign_in_link(user)
    return link[link.index("/sign-in/") :]


def test_a_mail_scanner_that_opens_the_link_spends_nothing(client: Client, owner: User) -> None:
    """Link scanners, chat previews and prefetching browsers send HEAD and GET, as often as they like."""
    path = path_of_link(owner)
    for _ in range(3):
        scanner = Client()
        assert scanner.head(path).status_code == 200
        assert "Sign in as owner" in assert_is_page(scanner.get(path))
        assert "sessionid" not in scanner.cookies
        assert scanner.get("/").status_code == 302
    assert client.post(path).status_code == 302
    assert client.get("/").status_code == 200


def test_a_one_time_link_signs_in_once_and_goes_where_it_was_wanted(owner: User) -> None:
    """As a browser without JavaScript does it: the page's one form, sent back as it came."""
    client, path = Client(enforce_csrf_checks=True), path_of_link(owner)
    page = client.get(f"{path}?next=/fleet/").content.decode()
    [form] = re.findall(r'<form method="post".*?</form>', page, re.DOTALL)
    assert form.count("<button") == 1
    sent = dict(re.findall(r'name="(\w+)" value="([^"]+)"', form))
    assert client.post(path, urlencode(sent), content_type=FORM)["Location"] == "/fleet/"
    assert client.get("/fleet/").status_code == 200
    assert_is_page(Client().post(path), 403)
    assert_is_page(Client().get(path), 403)
    # who is signed in already goes on
    assert client.get(path)["Location"] == "/"
    assert client.post(path, urlencode(sent), content_type=FORM).status_code == 403  # another session's form
    again = client.get("/settings/tokens/").context["csrf_token"]
    sent = urlencode({"csrfmiddlewaretoken": again, "next": "/runs/"})  # type: ignore[assignment]
    assert client.post(path, sent, content_type=FORM)["Location"] == "/runs/"


def test_a_stranger_who_sends_files_to_a_page_gets_a_refusal(owner: User) -> None:
    stranger, path = Client(enforce_csrf_checks=True), path_of_link(owner)
    stranger.get(path)
    assert stranger.post(path, {"csrfmiddlewaretoken": "x" * 32}).status_code == 400


def test_the_log_names_a_link_by_its_public_beginning_only(owner: User) -> None:
    [handler] = [one for one in logging.getLogger().handlers if isinstance(one.formatter, RedactingFormatter)]
    assert isinstance(handler, logging.StreamHandler)
    lines = handler.setStream(io.StringIO())
    path = path_of_link(owner)
    try:
        Client(enforce_csrf_checks=True).post(path)  # still works afterwards
        written = handler.stream.getvalue()
    finally:
        handler.setStream(lines)
    assert "Forbidden" in written
    assert "/sign-in/ofl_" in written
    assert path.strip("/").rpartition("/")[2] not in written


def test_another_site_cannot_sign_a_visitor_in_as_somebody_else(owner: User) -> None:
    path, victim = path_of_link(owner), Client(enforce_csrf_checks=True)
    assert victim.post(path, headers={"origin": "https://evil.example"}).status_code == 403
    assert victim.get("/").status_code == 302
    assert Client().post(path)["Location"] == "/"


def test_the_address_of_a_link_is_kept_from_caches_referrers_and_search_engines(client: Client, owner: User) -> None:
    path = path_of_link(owner)
    for response in (client.get(path), client.post(path), client.get(path), Client().get(path)):
        assert response["Cache-Control"] == "private, no-store"
        assert response["Referrer-Policy"] == "strict-origin"
        assert "noindex" in response["X-Robots-Tag"]


def test_a_session_that_somebody_planted_before_is_not_the_one_that_signs_in(client: Client, owner: User) -> None:
    session = client.session
    session["planted"] = "yes"
    session.save()
    planted = session.session_key
    client.cookies["onnxfarm_session"] = planted  # type: ignore[assignment]
    client.post(path_of_link(owner))
    assert client.cookies["onnxfarm_session"].value != planted
    assert Client(headers={"cookie": f"onnxfarm_session={planted}"}).get("/").status_code == 302


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_link_never_leads_away_from_the_farm(client: Client, owner: User, wanted: str) -> None:
    path = path_of_link(owner)
    assert "evil" not in client.get(path, {"next": wanted}).content.decode()
    assert client.post(path, {"next": wanted})["Location"] == "/"
    assert client.get("/sign-in/", {"next": wanted})["Location"] == "/"
    assert client.post(f"{path}?next={wanted}", {"next": wanted})["Location"] == "/"


def test_a_password_opens_nothing_not_even_the_administration(owner: User) -> None:
    """Django's own sign-in form has no limit of tries; here it is not shown, and not answered."""
    owner.set_password("correct horse")
    owner.is_staff = owner.is_superuser = True
    owner.save()
    client = Client()
    answer = client.post("/admin/login/?next=/admin/", {"username": "owner", "password": "correct horse"})
    assert answer["Location"] == "/sign-in/?next=/admin/"
    assert client.get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    client.post(path_of_link(owner))
    assert client.get("/admin/").status_code == 200


def test_a_signed_in_person_who_is_no_administrator_is_not_sent_in_circles(signed_in: Client) -> None:
    first = signed_in.get("/admin/login/?next=/admin/")
    assert first["Location"] == "/sign-in/?next=/admin/"
    assert "next=/admin/" not in signed_in.get(first["Location"])["Location"]


def test_signing_out_ends_the_session(signed_in: Client) -> None:
    assert signed_in.get("/sign-in/?next=/runs/")["Location"] == "/runs/"
    assert signed_in.post("/sign-out/")["Location"] == "/sign-in/"
    assert_is_page(signed_in.get("/sign-in/"))
    assert signed_in.get("/").status_code == 302
