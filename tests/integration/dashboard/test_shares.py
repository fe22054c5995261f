"""Share links: what they show, what they keep to themselves, and how they end."""

import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from farm.accounts.models import AuditEvent, Share, Team, User
from farm.accounts.services import record, revoke_share
from farm.base.refusals import Invalid, Missing, NotAllowed
from farm.base.secrecy import hash_secret
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.services.share_links import share
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page, words_of

HREF = re.compile(r'\s(?:href|action|src|hx-get|hx-post)="([^"]*)"')


@pytest.fixture
def run(version: Version, node: Node, owner: User) -> Run:
    return rows.finished_run(version, node, owner, crashes=[1])


def path_of(url: str) -> str:
    return url[url.index("/shared/") :]


def made(run: Run, by: User, kind: str, **how: int) -> str:
    """A new link's path, of each kind about the same run."""
    subjects = {
        "run": str(run.pk),
        "cell": f"{run.pk}:c5",
        "model": str(run.version.model_id),
        "compare": f"{run.pk}:c1,{run.pk}:c5",
    }
    return path_of(share(kind=kind, subject=subjects[kind], by=by, **how)[1])


def test_a_shared_run_has_a_card_as_long_as_it_is_shared_and_no_name_leaves_its_text(run: Run, owner: User) -> None:
    run.version.model.name = "</text><script>alert(1)</script>"
    run.version.model.save()
    path = made(run, owner, "run")
    answer = Client().get(f"{path}card.svg")
    assert answer["Content-Type"] == "image/svg+xml"
    assert "prefers-color-scheme: dark" in answer.content.decode()
    svg = ElementTree.fromstring(answer.content)
    assert {part.tag.rpartition("}")[2] for part in svg.iter()} == {
        "svg", "title", "desc", "style", "rect", "text", "tspan"
    }  # fmt: skip
    said = " ".join(" ".join(svg.itertext()).split())
    assert "slower than 1.29.0" in said
    assert "<script>alert(1)" in said
    shown = Client().get(path).content.decode()
    assert f'<meta property="og:image" content="{settings.PUBLIC_URL}{path}card.png">' in shown
    picture = Client().get(f"{path}card.png")
    assert (picture["Content-Type"], picture.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    revoke_share(share=Share.objects.get(), by=owner)
    model = made(run, owner, "model")
    assert "og:image" not in Client().get(model).content.decode()
    for form in ("svg", "png"):
        assert Client().get(f"{path}card.{form}").status_code == 410
        assert Client().get(f"{model}card.{form}").status_code == 404
        assert Client().get(f"/shared/nothing/card.{form}").status_code == 404


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("run", "slower than 1.29.0"),
        ("cell", "ONNX Runtime 1.31.1"),
        ("model", "takes"),
        ("compare", "2 cells compared"),
    ],
)
def test_a_link_shows_its_page_to_anybody_and_leads_nowhere_else(run: Run, owner: User, kind: str, words: str) -> None:
    path = made(run, owner, kind)
    answer = Client().get(path)
    assert words in assert_is_page(answer)
    page = answer.content.decode()
    # a form may choose what is shown, and orders nothing
    assert 'method="post"' not in page
    assert owner.username not in page.replace("onnxfarm", "")
    leads = {one for one in HREF.findall(page) if not one.startswith(("/static/", "?", "#"))}
    assert leads <= {path}
    # cells of figures are no addresses either
    assert not re.search(r"/(runs|models|fleet|api)/", page)
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert 'name="robots" content="noindex, nofollow"' in page
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer["Cache-Control"]
    # whoever is signed in sees no more
    signed_in = Client()
    signed_in.force_login(owner)
    assert 'method="post"' not in signed_in.get(path).content.decode()


@pytest.mark.parametrize("chart", ["comparisons", "latency", "operators", "providers", "throughput", "pareto"])
def test_every_chart_of_a_shared_run_leads_nowhere(run: Run, owner: User, chart: str) -> None:
    answer = Client().get(made(run, owner, "run"), {"chart": chart, "metric": "p50", "columns": "batch"})
    assert_is_page(answer)
    assert not re.search(r"/(runs|models|fleet|api)/", answer.content.decode())


def test_a_run_that_is_still_measured_is_shown_as_far_as_it_is(version: Version, node: Node, owner: User) -> None:
    begun = rows.begin_run(version, owner)
    assert "still in progress" in assert_is_page(Client().get(made(begun, owner, "run")))


def test_a_shared_run_is_made_once_for_all_who_read_it(run: Run, owner: User) -> None:
    path = made(run, owner, "run")
    with CaptureQueriesContext(connection) as first:
        page = Client().get(path).content
    with CaptureQueriesContext(connection) as again:
        assert Client().get(path).content == page
    assert len(again) < len(first) / 2


def test_only_the_digest_of_a_link_is_kept(run: Run, owner: User) -> None:
    secret = made(run, owner, "run").strip("/").rsplit("/", 1)[1]
    assert Share.objects.get().digest == hash_secret(secret)
    assert secret not in str(Share.objects.values().get())
    assert secret not in str(list(AuditEvent.objects.values()))


def test_a_link_ends_on_its_day_when_it_is_closed_and_when_its_maker_leaves(run: Run, owner: User) -> None:
    path = made(run, owner, "run", days=7)
    kept = Share.objects.get()
    assert kept.expires_at - kept.created_at == pytest.approx(timedelta(days=7), abs=timedelta(minutes=5))
    assert Client().get(path).status_code == 200
    Share.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert "This share link expired on" in assert_is_page(Client().get(path), 410)
    Share.objects.update(expires_at=timezone.now() + timedelta(days=1))
    revoke_share(share=kept, by=owner)
    words = assert_is_page(Client().get(path), 410)
    assert "This share link was revoked. Ask the person who sent it for a new one." in words
    other = made(run, owner, "run")
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert_is_page(Client().get(other), 410)


def test_a_link_to_what_was_removed_or_is_no_longer_its_maker_s_to_see_is_gone(run: Run, owner: User) -> None:
    path = made(run, owner, "cell")
    owner.memberships.all().delete()
    assert "no longer exists" in assert_is_page(Client().get(path), 410)


@pytest.mark.django_db
def test_a_link_that_nobody_made_is_a_helpful_404() -> None:
    answer = Client().get("/shared/ofp_nobody-made-this/")
    assert "This share link does not exist. Check that the whole link was copied." in assert_is_page(answer, 404)
    assert answer["X-Robots-Tag"] == "noindex, nofollow"


@pytest.mark.parametrize(("address", "is_warned"), [("http://127.0.0.1:8000", True), ("https://farm.example", False)])
def test_a_button_makes_a_link_and_the_list_closes_it(
    signed_in: Client, run: Run, settings: Settings, address: str, is_warned: bool
) -> None:
    settings.PUBLIC_URL = address
    assert 'action="/settings/shares/"' in signed_in.get(f"/runs/{run.pk}/").content.decode()
    answer = signed_in.post("/settings/shares/", {"kind": "run", "subject": str(run.pk), "days": "7"})
    assert "Copy it now; it is not shown again." in assert_is_page(answer)
    assert ("cannot reach http" in assert_is_page(answer)) == is_warned
    url = re.search(r"<code>(http\S+/shared/ofp_[^<]+/)</code>", answer.content.decode())
    assert url
    assert Client().get(path_of(url[1])).status_code == 200
    listed = signed_in.get("/settings/shares/")
    assert f"run {run.pk} of encoder" in assert_is_page(listed)
    assert "1 active share link" in words_of(listed)
    assert "ofp_" in listed.content.decode()
    assert path_of(url[1]) not in listed.content.decode()
    closed = signed_in.post(f"/settings/shares/{Share.objects.get().pk}/close/", follow=True)
    assert "was revoked" in assert_is_page(closed)
    # a list of what is shown to strangers has no dead links, until they are asked for
    assert "No active share links" in words_of(signed_in.get("/settings/shares/"))
    assert f"run {run.pk} of encoder" not in words_of(signed_in.get("/settings/shares/"))
    every = signed_in.get("/settings/shares/?every=yes").content.decode()
    assert "revoked" in every
    assert ">revoke<" not in every
    assert Client().get(path_of(url[1])).status_code == 410


def test_the_audit_log_tells_who_made_opened_and_closed_a_link(signed_in: Client, run: Run, owner: User) -> None:
    path = made(run, owner, "run")
    for _ in range(3):
        Client().get(path)
    revoke_share(share=Share.objects.get(), by=owner)
    revoke_share(share=Share.objects.get(), by=owner)
    record(verb="retention acted", team=run.team)
    verbs = list(AuditEvent.objects.filter(verb__startswith="share").order_by("pk").values_list("verb", flat=True))
    assert verbs == ["share link made", "share link opened", "share link closed"]
    words = assert_is_page(signed_in.get("/settings/audit/"))
    assert all(verb in words for verb in verbs)
    assert f"run {run.pk} of encoder v1 not signed in" in words
    assert "retention acted the farm" in words


def test_whoever_may_only_look_or_may_not_see_shares_nothing(
    run: Run, viewer: User, stranger: User, owner: User, member: User
) -> None:
    with pytest.raises(NotAllowed, match="not share its pages"):
        made(run, viewer, "run")
    with pytest.raises(Missing):
        made(run, stranger, "run")
    with pytest.raises(Missing):
        made(run, stranger, "compare")
    made(run, owner, "run")
    with pytest.raises(NotAllowed, match="may close this link"):
        revoke_share(share=Share.objects.get(), by=member)


@pytest.mark.parametrize(
    ("kind", "subject", "days", "word"),
    [
        ("node", "1", 30, "cannot be shared"),
        ("run", "one", 30, "not the number of a run"),
        ("run", "9" * 40, 30, "not the number"),
        ("cell", "1", 30, "names no cell"),
        ("cell", "{run}:c1,{run}:c5", 30, "one cell"),
        ("compare", "{run}:c1", 30, "2 to 4 cells"),
        ("run", "{run}", 0, "1 to 365 days, not 0"),
        ("run", "{run}", 366, "1 to 365 days, not 366"),
    ],
)
def test_what_cannot_be_shared_is_said_in_one_sentence(
    run: Run, owner: User, kind: str, subject: str, days: int, word: str
) -> None:
    with pytest.raises(Invalid, match=re.escape(word)):
        share(kind=kind, subject=subject.format(run=run.pk), by=owner, days=days)


def test_the_api_makes_lists_and_closes_links(team: Team, owner: User, run: Run) -> None:
    client = Client()
    client.force_login(owner)
    sent = {"kind": "compare", "subject": f"{run.pk}:c1,{run.pk}:c5", "days": 2}
    answer = client.post("/api/v1/shares", sent, content_type="application/json")
    assert answer.status_code == 201, answer.content
    new = answer.json()
    shared = Client().get(path_of(new["url"]))
    assert (shared.status_code, "<title>Comparison" in shared.content.decode()) == (200, True)
    [listed] = client.get("/api/v1/shares").json()
    assert "url" not in listed
    assert (listed["title"], listed["is_open"]) == (f"cells c1 and c5 of run {run.pk}", True)
    assert client.delete(f"/api/v1/shares/{new['id']}").json()["is_open"] is False
    bad = client.post("/api/v1/shares", {**sent, "days": 9999}, content_type="application/json")
    assert bad.status_code == 422
    assert "days" in bad.json()["detail"]
