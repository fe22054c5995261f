"""The home page opens with what has to be looked at and what changed; which runtime is where."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.services import create_owner
from farm.alerts.models import Release
from farm.alerts.states import AlertEventKind
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.registry.models import Version
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.runs.models import Run
from farm.runs.states import RunReason, RunState
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db
ONE = {"matrix": {**rows.MATRIX["matrix"], "batch": [1], "precision": ["fp32"]}, "budget": "quick"}


def test_open_alerts_come_first(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    alert = watching.bare_alert(make_watch(version, owner), version)
    response = signed_in.get("/")
    words, text = assert_is_page(response), response.content.decode()
    assert "encoder: 1.30.0 is 24.0 % slower than 1.29.0 nothing is being measured · 1 of 1 node online" in words
    assert text.index(f"/alerts/{alert.pk}/") < text.index("In progress")


def test_an_alert_that_somebody_looks_after_needs_nobody_else(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    watch = make_watch(version, owner)
    watching.bare_alert(watch, version, bad="1.30.0", state="acknowledged")
    words = assert_is_page(signed_in.get("/"))
    assert "Nothing needs you 1 acknowledged alert" in words
    assert "encoder: 1.30.0 is 24.0 % slower than 1.29.0 1 acknowledged" in assert_is_page(signed_in.get("/alerts/"))
    assert 'class="count"' not in signed_in.get("/").content.decode()
    watching.bare_alert(watch, version, bad="1.31.0")
    assert "encoder: 1.31.0 is 24.0 % slower than 1.29.0 1 acknowledged alert" in assert_is_page(signed_in.get("/"))
    assert "1 more open alert 1 acknowledged" in assert_is_page(signed_in.get("/alerts/"))


def test_pre_releases_are_not_among_those_that_became_known(signed_in: Client, node: Node) -> None:
    """Home counted 38 releases, the page of runtimes 36."""
    for version in ("1.31.1", "1.32.0", "1.33.0rc1"):
        Release.objects.create(distribution="onnxruntime", version=version, is_prerelease="rc" in version)
    assert "2 releases of onnxruntime became known" in assert_is_page(signed_in.get("/"))


def test_a_week_is_told_by_the_newest_run_of_each_model_the_gravest_first(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    """Wrong outputs, losses, gains; what is as before is no news, nor is what is older than a week."""
    slow = "onnxruntime==1.31.1"
    for name, how in {
        "wrong": {"wrong": True},
        "gain": {"slow": {slow: 0.94}},
        "equal": {"slow": {}},
        "old": {},
    }.items():
        run = rows.finished_run(rows.make_version(team, owner, name=name), node, owner, matrix=ONE, **how)
        Run.objects.filter(pk=run.pk, version__model__name="old").update(finished_at=timezone.now() - timedelta(days=8))
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    rows.finished_run(version, node, owner, matrix=ONE)
    response = signed_in.get("/")
    assert (
        "wrong has wrong outputs, 1 more model got worse 2 models worse, 1 better in the last 7 days"
        in assert_is_page(response)
    )
    news = response.content.decode().partition('id="news"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row"><a[^>]*>(\w+)</a>', news) == ["wrong", "encoder", "gain"]


def test_what_the_farm_measures_for_alerts_alone_is_no_empty_list(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    """ "No runs in progress" stood below "1 run for searches and alerts"."""
    run = rows.finished_run(version, node, owner, matrix=ONE, slow={})
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING, reason=RunReason.BISECTION)
    words = assert_is_page(signed_in.get("/"))
    assert "Nothing needs you" in words
    assert "In progress Only runs for searches and alerts ." in words


def test_somebody_in_no_team_is_told_whom_to_ask(stranger: User) -> None:
    stranger.memberships.all().delete()
    words = assert_is_page(client_of(stranger).get("/"))
    assert "You are in no team yet: ask an admin of one to add you." in words
    assert "no node has joined yet" not in words


def test_one_precision_beside_another_is_no_news(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    """INT8 is slower than FP32 on this machine: nothing became worse."""
    both = {"matrix": {"runtime": ["1.31.1"], "batch": [1], "precision": ["fp32", "fp16"]}, "budget": "quick"}
    run = rows.finished_run(version, node, owner, matrix=both, slow={"fp16": 1.5})
    assert run.lead["axis"] == "precision"
    text = signed_in.get("/").content.decode()
    assert 'id="news"' not in text
    assert "No runs yet" not in text


def test_a_release_of_this_week_leads_to_its_card(signed_in: Client) -> None:
    offer("1.31.1")
    assert 'href="/releases/onnxruntime/1.31.1/"' in signed_in.get("/").content.decode()


def test_what_comes_next_says_why_it_waits_and_how_many_more_do(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    rows.MadeUpNode(node).measure(rows.begin_run(version, owner, matrix=ONE), most_blocks=1, most_rounds=1)
    first, _ = (rows.begin_run(rows.make_version(team, owner, name=name), owner, matrix=ONE) for name in ("b", "c"))
    words = assert_is_page(signed_in.get("/"))
    assert f"Run {first.pk} waits. Queued: bench-1" in words
    assert "1 more run waits." in words
    # people's runs are measured first, however long a watch's has waited
    Run.objects.filter(pk=first.pk).update(reason=RunReason.WATCH)
    assert f"Run {first.pk} waits" not in assert_is_page(signed_in.get("/"))


def test_a_machine_that_asks_to_join_needs_who_may_approve_it(
    signed_in: Client, team: Team, owner: User, member: User
) -> None:
    rows.make_node(team, owner, name="pi", health=NodeHealth.PENDING)
    words = assert_is_page(signed_in.get("/"))
    assert "pi waits for approval." in words
    assert "1 request needs you" in words, "“Nothing needs you” stood above it"
    assert "pi waits for approval." not in assert_is_page(client_of(member).get("/")), "who has no button to approve it"


def test_home_leads_an_administrator_to_what_is_left_of_setting_up(signed_in: Client) -> None:
    """ "Nothing needs you" stood there with one of five steps done, and nothing led to them."""
    assert "of setting up" not in assert_is_page(signed_in.get("/"))
    response = client_of(create_owner(name="root", team_name="home")).get("/")
    assert re.search(r"\d of 5 steps of setting up are done", assert_is_page(response))
    assert re.search(r'<p class="note"><a href="/settings/">\d of 5 steps', response.content.decode())


def test_an_alert_of_today_is_named_with_its_release_and_not_above_nothing_worse(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    """ "1 open alert needs you" stood above "0 worse, 0 better", and the release that was found worse nowhere."""
    alert = watching.bare_alert(make_watch(version, owner), version, bad="1.32.0", first_bad="1.30.0")
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    words = assert_is_page(signed_in.get("/"))
    assert "0 worse" not in words
    assert f"{alert.since_phrase} found in 1.32.0" in words


def test_runtimes_say_where_each_release_is_installed_or_would_be(
    signed_in: Client, team: Team, owner: User, node: Node
) -> None:
    rows.make_node(team, owner, name="pi", providers=["CPUExecutionProvider", "OpenVINOExecutionProvider"])
    other = Node.objects.get(name="pi")
    other.runtimes = ["onnxruntime-openvino==1.24.1"]
    other.save()
    words = assert_is_page(signed_in.get("/fleet/runtimes/"))
    assert (
        f"onnxruntime: 2 of {len(ONNXRUNTIME)} releases installed on a node; the newest is {ONNXRUNTIME[-1]}" in words
    )
    assert "installed bench-1 ; ○ on demand on 1 node" in words
    openvino = assert_is_page(signed_in.get("/fleet/runtimes/?distribution=onnxruntime-openvino"))
    assert "1.24.1" in openvino
    assert "OpenVINO" in openvino
    assert assert_is_page(signed_in.get("/fleet/runtimes/?distribution=nonsense")) == words


def test_runtimes_without_a_node_and_without_a_release(signed_in: Client) -> None:
    words = assert_is_page(signed_in.get("/fleet/runtimes/"))
    assert "No nodes yet" in words
    assert f"{len(ONNXRUNTIME)} releases known, no node" in words


def test_a_release_that_is_gone_but_installed_is_said(signed_in: Client, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    assert "1.31.1 ▲ no longer on the index" in assert_is_page(signed_in.get("/fleet/runtimes/"))


def test_an_installed_pre_release_that_the_index_still_has_is_not_called_gone(signed_in: Client, node: Node) -> None:
    offer("1.29.0", "1.31.1", "1.33.0rc1")
    Node.objects.filter(pk=node.pk).update(runtimes=["onnxruntime==1.33.0rc1"])
    words = assert_is_page(signed_in.get("/fleet/runtimes/"))
    assert "1.33.0rc1" in words
    assert "no longer on the index" not in words


def test_a_release_says_since_when_it_is_known_what_was_measured_with_it_and_what_alerted(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    rows.finished_run(version, node, owner)
    offer("1.29.0", "1.30.0", "1.31.1")
    Release.objects.filter(version="1.30.0").update(is_gone=True, is_yanked=True, yanked_because="wrong wheels")
    watch = make_watch(version, owner)
    alert = watching.bare_alert(watch, version, bad="1.31.1", first_bad="1.29.0")
    watching.bare_round(watch, version, outcome="quiet", new="1.31.1")
    again = watching.bare_round(watch, version, outcome="alert", new="1.32.0")
    alert.log(AlertEventKind.SEEN_AGAIN, "Still slower.", round=again.pk)
    words = assert_is_page(signed_in.get("/fleet/runtimes/"))
    [newest] = re.findall(r"1\.31\.1 20\d\d.*?(?=1\.29\.0|1\.30\.0)", words)
    assert "1 run of 1 model on bench-1" in newest
    assert f"alert {alert.pk} ● encoder, open" in newest
    # with the release that was measured, and with the one that brought it
    assert words.count(f"alert {alert.pk} ● encoder, open") == 3
    assert f"alert {alert.pk} ● encoder, open, as in 1.29.0" in words
    assert "= no change (1)" in newest
    assert f"1.29.0 reference of {watch.name}" in words
    assert f"Watched by {watch.name} against 1.29.0" in words
    assert "▲ yanked: wrong wheels" not in words
    node.runtimes = [*node.runtimes, "onnxruntime==1.30.0"]
    node.save()
    assert "1.30.0 ▲ yanked: wrong wheels" in assert_is_page(signed_in.get("/fleet/runtimes/"))


@pytest.mark.parametrize("status", ["refused", "cancelled", "failed"])
def test_a_run_that_measured_nothing_with_a_release_is_not_counted_for_it(
    signed_in: Client, version: Version, node: Node, owner: User, status: str
) -> None:
    run = rows.finished_run(version, node, owner)
    run.cells.filter(runtime="onnxruntime==1.31.1").update(status=status)
    offer("1.29.0", "1.31.1")
    releases = signed_in.get("/fleet/runtimes/", {"as": "json"}).json()
    assert {row["release"]: row["runs"] for row in releases} == {"1.29.0": 1, "1.31.1": 0}


def test_strangers_see_no_nodes(stranger: User, node: Node) -> None:
    words = assert_is_page(client_of(stranger).get("/fleet/runtimes/"))
    assert "bench-1" not in words
    assert "of 1 model" not in words


def test_the_old_address_of_runtimes_keeps_what_was_asked(signed_in: Client) -> None:
    assert signed_in.get("/runtimes/?early=yes")["Location"] == "/fleet/runtimes/?early=yes"
