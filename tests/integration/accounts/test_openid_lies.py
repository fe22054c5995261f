"""Identity providers that lie, are away, are configured wrongly or by nobody: nobody is signed in, in a sentence."""

from pathlib import Path
from typing import Any

import jwt
import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import User
from farm.accounts.openid.registration import Registration
from farm.config.environment import Environment, read_registration
from tests.integration.accounts.issuer import CLIENT, SECRET, Issuer, key, serving
from tests.integration.accounts.signing_in import press, said, sent_to, sign_in, who


def _other_issuer(issuer: Issuer) -> None:
    issuer.document["issuer"] = "https://evil.example/<b>"


def _lies_later(issuer: Issuer) -> None:
    issuer.claims["iss"] = "https://evil.example"


def _other_client(issuer: Issuer) -> None:
    issuer.claims["aud"] = "another-client"


def _other_party(issuer: Issuer) -> None:
    issuer.claims |= {"aud": [CLIENT, "other"], "azp": "other"}


def _late(issuer: Issuer) -> None:
    issuer.claims["exp"] = 1_000_000_000


def _other_nonce(issuer: Issuer) -> None:
    issuer.claims["nonce"] = "of-another-browser"


def _other_key(issuer: Issuer) -> None:
    issuer.signing_key = key(1)


def _unsigned(issuer: Issuer) -> None:
    issuer.signing_key, issuer.algorithm = None, "none"


def _signed_by_the_secret(issuer: Issuer) -> None:
    issuer.signing_key, issuer.algorithm = SECRET * 4, "HS256"


def _other_person(issuer: Issuer) -> None:
    issuer.userinfo["sub"] = "u-2"


def _no_subject(issuer: Issuer) -> None:
    issuer.claims["sub"] = ""


def _long_subject(issuer: Issuer) -> None:
    issuer.claims["sub"] = "u" * 192


def _bad_token_answer(issuer: Issuer) -> None:
    issuer.answers["/token"] = (200, b"[1]")


def _refused_code(issuer: Issuer) -> None:
    issuer.answers["/token"] = (400, b'{"error": "invalid_grant"}')


def _bad_keys(issuer: Issuer) -> None:
    issuer.answers["/keys"] = (200, b'{"keys": "none"}')


def _no_json(issuer: Issuer) -> None:
    issuer.answers["/me"] = (200, b"<html>")


def _redirected(issuer: Issuer) -> None:
    issuer.answers["/me"] = (302, f"{issuer.url}/elsewhere".encode())


@pytest.mark.parametrize(
    ("lie", "logged"),
    [
        (_lies_later, "issuer"), (_other_client, "Audience"), (_other_party, "another party"), (_late, "expired"),
        (_other_nonce, "nonce"), (_other_key, "Signature"), (_unsigned, "'none'"), (_signed_by_the_secret, "'HS256'"),
        (_other_person, "userinfo"), (_no_subject, "subject"), (_long_subject, "subject"),
        (_bad_token_answer, "no JSON object"), (_refused_code, "answered 400"), (_bad_keys, "JWK"),
        (_no_json, "Expecting value"), (_redirected, "Expecting value"),
    ],
)  # fmt: skip
def test_an_answer_that_proves_nothing_signs_nobody_in_and_the_log_says_why(
    client: Client, issuer: Issuer, lie: Any, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    lie(issuer)
    answer = sign_in(client, issuer)
    assert (answer.status_code, said(answer)) == (
        400,
        "login.example sent an answer that does not prove who signed in, so nobody was.",
    )
    assert logged in caplog.text
    assert who(client) is None
    assert User.objects.count() == 0
    assert "/elsewhere" not in issuer.asked


def test_made_up_codes_of_one_address_are_asked_of_the_provider_a_few_times(client: Client, issuer: Issuer) -> None:
    issuer.answers["/token"] = (400, b'{"error": "invalid_grant"}')
    statuses = [sign_in(client, issuer).status_code for _ in range(50)]
    assert statuses[:30] == [400] * 30
    assert 429 in statuses[30:]
    del issuer.answers["/token"]
    # and hold nobody else up
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), issuer).status_code == 302


def test_an_issuer_that_calls_itself_otherwise_is_refused_before_anybody_is_sent_there(client: Client, issuer: Issuer):
    _other_issuer(issuer)
    answer = press(client)
    assert said(answer).startswith("login.example says that it is “https://evil.example/<b>”, and this farm expects")
    assert b"evil.example/&lt;b&gt;" in answer.content


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/token", "http://169.254.169.254/latest", "file:///etc/passwd", "//evil.example", 7, None,
        "http://127.0.0.1:1/token", "https://user:word@127.0.0.1/", "javascript:alert(1)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("part", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_the_farm_asks_and_sends_nobody_but_the_issuer_s_host(
    client: Client, issuer: Issuer, part: str, elsewhere: object
) -> None:
    issuer.document[part] = elsewhere
    assert f"as its {part}, which is not on the issuer's host" in said(press(client))
    assert issuer.asked == ["/.well-known/openid-configuration"]


def test_hosts_that_an_administrator_named_are_the_issuer_s_too(issuer: Issuer) -> None:
    known = Registration(issuer=issuer.url, client_id="a", secret="b", name="c", hosts=("keys.example",))
    assert known.allows_url("https://keys.example/jwks")
    assert not known.allows_url("http://keys.example/jwks")
    assert not known.allows_url("https://keys.example.evil/jwks")
    assert not known.allows_url("https://keys.example:444/jwks")


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (500, b"{}", "login.example answers 500 where its configuration should be."),
        (302, b"https://evil.example/", "login.example answers 302 where its configuration should be."),
        (200, b"<html>", "login.example sent no configuration that this farm can read."),
        (200, b"[]", "login.example sent no configuration that this farm can read."),
        (200, b'"' + b"x" * (1 << 20) + b'"', "login.example does not answer, so nobody was signed in."),
    ],
)
def test_a_configuration_that_is_none_is_said(client: Client, issuer: Issuer, status: int, body: bytes, sentence: str):
    issuer.answers["/.well-known/openid-configuration"] = (status, body)
    assert said(press(client)) == sentence


def test_a_provider_that_is_away_is_said_at_each_step(client: Client, settings: Settings, db: None) -> None:
    with serving() as issuer:
        settings.OPENID = Registration(issuer=issuer.url, client_id=CLIENT, secret=SECRET, name="login.example")
        settings.PUBLIC_URL = "http://testserver"
        way_back = issuer.code(sent_to(client))
    answer = client.get(way_back)
    assert (answer.status_code, said(answer)) == (503, "login.example does not answer, so nobody was signed in.")
    cache.clear()
    answer = press(client)
    assert (answer.status_code, said(answer)) == (503, "login.example does not answer, so nobody was signed in.")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"oidc_issuer": "http://login.example"}, "has to begin with https://"),
        ({"oidc_issuer": "https://"}, "has to begin with https://"),
        ({"oidc_issuer": "https://[x"}, "cannot be read"),
        ({"oidc_issuer": "https://a:b@login.example"}, "no user, no password"),
        ({"oidc_issuer": "https://login.example?x=1"}, "no query"),
        ({"oidc_client_id": ""}, "CLIENT_ID or its secret is missing"),
        ({"oidc_client_secret": "", "oidc_client_secret_file": "/nowhere"}, "CLIENT_ID or its secret is missing"),
        ({}, ""),
    ],
)
def test_a_configuration_that_cannot_work_is_named(
    tmp_path: Path, settings: Settings, client: Client, db: None, values: dict[str, Any], problem: str
) -> None:
    given = {"oidc_issuer": "https://login.example", "oidc_client_id": "farm", "oidc_client_secret": SECRET} | values
    known = read_registration(Environment(home=tmp_path, **given))
    assert problem in known.problem
    assert bool(known.problem) == bool(problem)
    assert SECRET not in repr(known)
    if problem:
        settings.OPENID = known
        assert said(press(client)).startswith("This farm's sign-in is not set up: ")
        with pytest.raises(CommandError, match="E003"):
            call_command("check")


def test_the_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of-a-file\n")
    environment = Environment(
        home=tmp_path, oidc_issuer="https://login.example/realm", oidc_client_id="farm",
        oidc_client_secret_file=tmp_path / "secret",
    )  # fmt: skip
    known = read_registration(environment)
    assert (known.secret, known.name, known.problem) == ("of-a-file", "login.example", "")
    assert read_registration(Environment(home=tmp_path)) is None


def test_a_farm_that_nobody_could_enter_is_named(settings: Settings) -> None:
    settings.LOCAL_SIGN_IN = False
    with pytest.raises(CommandError, match="E004"):
        call_command("check")


def test_no_page_of_allauth_is_there(client: Client, owner: User) -> None:
    client.force_login(owner)
    for path in (
        "signup",
        "login",
        "logout",
        "email",
        "password/reset",
        "password/change",
        "social/connections",
        "3rdparty",
    ):
        for before in ("/accounts/", "/"):
            assert client.get(f"{before}{path}/").status_code == 404
    User.objects.filter(pk=owner.pk).update(is_superuser=True, is_staff=True)
    assert b"socialaccount" not in client.get("/admin/").content


def test_an_algorithm_by_the_client_s_secret_would_be_one_that_others_can_sign_with() -> None:
    from farm.accounts.openid.exchange import ALGORITHMS

    assert not [one for one in ALGORITHMS if one.startswith("HS") or one == "none"]
    assert set(ALGORITHMS) <= set(jwt.algorithms.get_default_algorithms())
