"""The API's frame: who is let in, how errors look, what browsers are told."""

import pytest
from django.conf import settings
from django.test import Client

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON, Scope
from tests.conftest import ApiOf

ADDRESSES = ["/api/v1/me", "/api/v1/models", "/api/v1/models/1", "/api/v1/versions/1", "/api/v1/tokens"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_is_let_in_without_a_token(client: Client, db: None, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 401
    assert answer.json()["code"] == "not_signed_in"
    assert "ofk_" in answer.json()["hint"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic eDp5", "Bearer ofk_" + "A" * 43, "Bearer \x7f"])
def test_a_wrong_token_opens_nothing(db: None, header: str) -> None:
    assert Client(headers={"authorization": header}).get("/api/v1/me").status_code == 401


def test_a_token_tells_who_one_is(api_of: ApiOf, viewer: User) -> None:
    me = api_of(viewer).get("/api/v1/me").json()
    assert me["username"] == "viewer"
    assert [(team["name"], team["can_write"]) for team in me["teams"]] == [("vision", False)]


def test_a_signed_in_browser_reads_freely_and_writes_with_a_csrf_token(member: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(member)
    assert browser.get("/api/v1/me").json()["username"] == "member"
    refused = browser.post("/api/v1/tokens", b"{}", content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
    secret = "a" * 32
    browser.cookies[settings.CSRF_COOKIE_NAME] = secret
    asked = {"name": "ci", "scopes": ["read"]}
    made = browser.post("/api/v1/tokens", asked, content_type="application/json", headers={"x-csrftoken": secret})
    assert made.status_code == 201


def test_a_read_token_may_not_write(api_of: ApiOf, member: User) -> None:
    answer = api_of(member, Scope.READ).post("/api/v1/uploads", {})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope")


def test_tokens_are_made_and_closed_with_the_admin_scope(api_of: ApiOf, member: User) -> None:
    client = api_of(member, *ALL_OF_A_PERSON)
    made = client.post("/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, content_type="application/json")
    assert made.status_code == 201
    secret = made.json()["secret"]
    other = Client(headers={"authorization": f"Bearer {secret}"})
    assert other.get("/api/v1/me").status_code == 200
    listed = client.get("/api/v1/tokens").json()
    assert not any("secret" in token for token in listed)
    assert client.delete(f"/api/v1/tokens/{made.json()['id']}").status_code == 200
    assert other.get("/api/v1/me").status_code == 401


def test_a_token_cannot_make_others_without_the_admin_scope(member_api: Client) -> None:
    answer = member_api.post("/api/v1/tokens", {"name": "ci"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "scope")


def test_a_stranger_cannot_close_a_token(api_of: ApiOf, member: User, stranger: User) -> None:
    token, _ = issue_token(member)
    assert api_of(stranger, *ALL_OF_A_PERSON).delete(f"/api/v1/tokens/{token.pk}").status_code == 404


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("get", "/api/v1/nothing", 404),
        ("get", "/api/v1/models/999", 404),
        ("get", "/api/v1/models/word", 404),
        ("get", "/api/v1/models/99999999999999999999999999", 404),
        ("get", "/api/v1/models?limit=0", 422),
        ("get", "/api/v1/models?after=x", 422),
        ("delete", "/api/v1/models", 405),
        ("post", "/api/v1/tokens", 400),
    ],
)
def test_every_error_is_one_sentence_in_json(api_of: ApiOf, member: User, method: str, address: str, status: int):
    client = api_of(member, *ALL_OF_A_PERSON)
    answer = (
        getattr(client, method)(address, b"{broken", content_type="application/json")
        if method == "post"
        else (getattr(client, method)(address))
    )
    assert answer.status_code == status
    if status != 405:
        assert answer.json()["detail"].endswith(".")
        assert answer.json()["code"]


def test_the_matrix_schema_and_the_api_description_are_open(client: Client) -> None:
    assert client.get("/api/v1/matrix-schema").json()["$schema"].startswith("https://json-schema.org/")
    assert "runtime" in client.get("/api/v1/matrix-default").json()["matrix"]
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    assert "/api/v1/uploads" in paths
    assert "multipart/form-data" in paths["/api/v1/uploads"]["post"]["requestBody"]["content"]


def test_the_api_page_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/api/v1/docs").content.decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "/static/ninja/swagger-ui-bundle.js" in page
    assert "<script>" not in page


def test_browsers_are_told_to_load_nothing_from_elsewhere(client: Client, db: None) -> None:
    headers = client.get("/api/v1/docs").headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.replace("style-src 'self' 'unsafe-inline'", "")
    assert "http" not in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


def test_a_mistake_of_ours_is_one_sentence_and_its_trace_stays_in_the_log(
    member_api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from farm.registry import selectors

    def broken(*_: object) -> None:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(selectors, "models_visible_to", broken)
    answer = member_api.get("/api/v1/models")
    assert answer.status_code == 500
    assert "secret" not in answer.content.decode()
    assert "a secret detail" in caplog.text


def test_a_method_that_an_address_does_not_take_is_refused_in_json(db: None, client: Client) -> None:
    answer = client.delete("/api/v1/models")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
    assert answer.json() == {
        "detail": "/api/v1/models takes no DELETE.",
        "code": "method_not_allowed",
        "hint": "It takes GET.",
    }
