"""The owner's limits: hours, longest block, heat, teams; on the page, over the API, and as nodes are told."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import AuditEvent, Membership, Team, User
from farm.accounts.states import Role, Scope
from farm.base.refusals import Conflict
from farm.fleet import services
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.services import claim_block
from tests.conftest import ApiOf
from tests.integration.dashboard.pages import assert_is_page, words_of
from tests.integration.dashboard.rows import begin_run, make_node, make_version
from tests.integration.runs.making import first_block

pytestmark = pytest.mark.django_db
FORM = {
    "is_paused": "", "hours": "20:00-06:00", "timezone": "Europe/Vienna", "minutes": "5", "temperature": "85",
    "cache": "10", "runtimes": "12.5", "tags": "lab-3 quiet", "teams": "",
}  # fmt: skip


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner)


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return make_version(team, owner)


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def hours_around(now_shift_h: int) -> str:
    """An hour of the day that begins so many hours from now, in UTC."""
    begin = timezone.now() + timedelta(hours=now_shift_h)
    return f"{begin:%H:%M}-{begin + timedelta(hours=1):%H:%M}"


def test_outside_its_hours_a_node_has_no_queue_and_says_why(node: Node, owner: User) -> None:
    services.change_settings(node=node, by=owner, hours=hours_around(2))
    assert node.queues == ()
    assert "Outside its owner's hours" in services.make_welcome(node).sentence
    services.change_settings(node=node, by=owner, hours=hours_around(0))
    assert node.queues != ()


def test_the_audit_log_has_what_an_owner_changed_and_is_searched_by_team(node: Node, owner: User) -> None:
    for changes in ({"is_paused": True, "hours": "20:00-06:00"}, {"is_paused": False}, {"is_paused": False}):
        services.change_settings(node=node, by=owner, **changes)
    events = AuditEvent.objects.filter(verb="node settings changed", actor=owner, team=node.team).order_by("pk")
    assert [event.facts["changed"] for event in events] == [["paused", "hours"], ["no longer paused"]]
    browser = browser_of(owner)
    found = [browser.get(f"/settings/audit/?q={words}").content.decode() for words in (node.team.name, "elsewhere")]
    assert ["node settings changed" in page for page in found] == [True, False]


def test_the_heading_of_a_node_s_page_says_what_keeps_it(node: Node, owner: User) -> None:
    def heading() -> str:
        page = browser_of(owner).get(f"/fleet/{node.pk}/").content.decode()
        return page[page.index("<h1>") + 4 : page.index("</h1>")]

    assert heading() == f"{node.name} is online, idle"
    services.change_settings(node=node, by=owner, hours=hours_around(2))
    assert heading() == f"{node.name} is online, outside its hours"
    services.change_settings(node=node, by=owner, is_paused=True)
    assert heading() == f"{node.name} is online, paused"
    services.revoke(node=node, by=owner)
    assert heading().endswith(", retired")


def test_pages_and_plans_say_that_a_paused_or_drained_node_takes_nothing(
    node: Node, owner: User, version: Version
) -> None:
    def words_on(address: str) -> str:
        return words_of(browser_of(owner).get(address))

    plan = f"/runs/new/?version={version.pk}"
    assert "The run will wait" not in words_on(plan)
    services.change_settings(node=node, by=owner, is_paused=True)
    assert "1 of 1 node online; bench-1 is paused by its owner" in words_on("/fleet/")
    assert "bench-1, paused by its owner" in words_on("/")
    assert "The run will wait: bench-1 is online but paused by its owner." in words_on(plan)
    services.change_settings(node=node, by=owner, is_paused=False)
    services.drain(node=node, by=owner)
    assert "drained" in words_on("/fleet/")
    assert "bench-1 is online, drained" in words_on(f"/fleet/{node.pk}/")


def test_a_claim_outside_the_hours_is_refused_with_the_reason(node: Node, owner: User, version: Version) -> None:
    block = first_block(begin_run(version, owner))
    services.change_settings(node=node, by=owner, hours=hours_around(2))
    with pytest.raises(Conflict):
        claim_block(node=node, block_id=str(block.pk), attempt=1)


def test_a_block_that_is_too_long_for_a_node_is_refused_with_both_lengths(node: Node, owner: User, version: Version):
    block = first_block(begin_run(version, owner))
    services.change_settings(node=node, by=owner, max_block_s=30)
    with pytest.raises(Conflict, match=r"takes blocks of at most 0.5 minutes; block \d+ is planned for"):
        claim_block(node=node, block_id=str(block.pk), attempt=1)


def test_the_page_shows_and_keeps_the_limits(node: Node, owner: User) -> None:
    browser = browser_of(owner)
    kept = browser.post(f"/fleet/{node.pk}/settings/", FORM, follow=True)
    assert "The limits of bench-1 were saved." in assert_is_page(kept)
    node.refresh_from_db()
    limits = node.settings
    assert (limits.hours, limits.timezone, limits.max_block_s) == ("20:00-06:00", "Europe/Vienna", 300)
    assert (limits.max_temperature_c, limits.cache_bytes, limits.runtimes_bytes) == (85, 10 * 2**30, 25 * 2**29)
    assert node.owner_tags == ["lab-3", "quiet"]
    assert 'value="20:00-06:00"' in kept.content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hours", "8 to 6"),
        ("hours", "25:00-26:00"),
        ("timezone", "Mars/Base"),
        ("timezone", "../../etc/passwd"),
        ("minutes", "soon"),
        ("minutes", "0"),
        ("minutes", "9e9"),
        ("temperature", "999"),
        ("cache", "0.1"),
        ("cache", "-3"),
        ("tags", "Not_A!Tag"),
        ("teams", "nobody has this one"),
    ],
)
def test_a_limit_out_of_range_is_refused_on_the_page_in_one_sentence(node: Node, owner: User, field: str, value: str):
    answer = browser_of(owner).post(f"/fleet/{node.pk}/settings/", {**FORM, field: value}, follow=True)
    words = assert_is_page(answer, 404 if field == "teams" else 400)
    assert "Not saved: correct the marked field." in words
    page = answer.content.decode()
    assert f'action="/fleet/{node.pk}/settings/#limits"' in page, "the answer opens at its form"
    assert page.count('aria-invalid="true"') == 1
    assert f'<p class="error" id="{field}-error">' in page
    # what was typed stands there still
    assert all(f'value="{text}"' in page for name, text in {**FORM, field: value}.items() if name != "is_paused")
    assert "were saved" not in words


def test_a_member_reads_the_limits_and_changes_nothing(node: Node, owner: User, member: User) -> None:
    services.change_settings(node=node, by=owner, hours="20:00-06:00")
    browser = browser_of(member)
    assert "Works 20:00-06:00 UTC" in assert_is_page(browser.get(f"/fleet/{node.pk}/"))
    words = assert_is_page(browser.post(f"/fleet/{node.pk}/settings/", {**FORM, "hours": ""}, follow=True))
    assert "Only the owner of bench-1" in words
    node.refresh_from_db()
    assert node.settings.hours == "20:00-06:00"


def test_the_teams_of_the_form_are_offered_the_node_and_wait_in_words(node: Node, owner: User) -> None:
    other = Team.objects.create(name="audio")
    Membership.objects.create(team=other, user=owner, role=Role.VIEWER)
    words = assert_is_page(
        browser_of(owner).post(f"/fleet/{node.pk}/settings/", {**FORM, "teams": "audio"}, follow=True)
    )
    assert "Waits for an admin of audio to agree." in words
    assert not Node.objects.serving(other, uploader=None).exists()


def test_the_api_lists_invites_limits_and_orders(api_of: ApiOf, node: Node, owner: User) -> None:
    client = api_of(owner, Scope.NODES)
    made = client.post("/api/v1/nodes/invitations", {}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["command"].startswith("onnxfarm node enroll http")
    assert made.json()["code"] in made.json()["command"]
    changed = client.patch(f"/api/v1/nodes/{node.pk}", {"hours": "07:00-19:00"}, content_type="application/json")
    assert changed.json()["settings"]["hours"] == "07:00-19:00"
    for what, health in (("drain", "draining"), ("resume", "active")):
        assert client.post(f"/api/v1/nodes/{node.pk}/{what}").json()["health"] == health
        again = client.post(f"/api/v1/nodes/{node.pk}/{what}")
        assert (again.status_code, again.json()["detail"]) == (409, f"{node.name} is {health} already.")
    assert client.post(f"/api/v1/nodes/{node.pk}/revoke").json()["health"] == "retired"
    assert [one["health"] for one in client.get("/api/v1/nodes").json()] == ["retired"]
    assert client.post(f"/api/v1/nodes/{node.pk}/resume").status_code == 409
    assert client.post(f"/api/v1/nodes/{node.pk}/explode").status_code == 422


def test_the_api_refuses_a_limit_that_there_is_not(api_of: ApiOf, node: Node, owner: User) -> None:
    answer = api_of(owner, Scope.NODES).patch(
        f"/api/v1/nodes/{node.pk}", {"paused": True}, content_type="application/json"
    )
    assert (answer.status_code, "paused" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("body", [{"hours": "x"}, {"hours": None}, {"max_block_s": 1}, {"cache_bytes": 5}])
def test_the_api_refuses_a_limit_out_of_range(api_of: ApiOf, node: Node, owner: User, body: dict[str, object]) -> None:
    answer = api_of(owner, Scope.NODES).patch(f"/api/v1/nodes/{node.pk}", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(".")
