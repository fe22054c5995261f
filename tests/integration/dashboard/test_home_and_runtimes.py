"""The home page opens with what has to be looked at and what changed; which runtime is where."""

import re
from datetime import timedelta

import pytest
from django.core.signing import get_cookie_signer
from django.test import Client
from django.utils import timezone

from dashboard.views.home import NAME, SALT
from farm.accounts.models import Team, User
from farm.alerts.models import Release
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.runtimes.releases import ONNXRUNTIME
from farm.runs.models import Run
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db


def was_here(client: Client, user: User, *, minutes_ago: float, before: float = 0) -> None:
    """As if the reader had opened the page so many minutes ago; `before`: when the visit before that one ended."""
    now = timezone.now()
    since, last = ((now - timedelta(minutes=ago)).timestamp() for ago in (before, minutes_ago))
    value = f"{user.pk}:{int(since) if before else 0}:{int(last)}"
    client.cookies[NAME] = get_cookie_signer(salt=NAME + SALT).sign(value)


def test_open_alerts_come_first(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    alert = watching.bare_alert(make_watch(version, owner), version)
    response = signed_in.get("/")
    words, text = assert_is_page(response), response.content.decode()
    assert "1 open alert; nothing is being measured; 1 of 1 node online" in words
    assert text.index(f"/alerts/{alert.pk}/") < text.index("In progress")


def has_news(client: Client) -> bool:
    """Whether the home page says what changed since the last visit."""
    page = client.get("/")
    assert_is_page(page)
    return 'id="since"' in page.content.decode()


def test_the_first_visit_has_nothing_to_compare_with(signed_in: Client, run: Run) -> None:
    for _ in range(2):
        assert not has_news(signed_in)


def test_a_later_visit_tells_what_changed_meanwhile(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    rows.finished_run(version, node, owner)
    offer("1.29.0", "1.32.0")
    alert = watching.bare_alert(make_watch(version, owner), version)
    rows.make_version(team, owner, name="decoder")
    was_here(signed_in, owner, minutes_ago=31)
    words = assert_is_page(signed_in.get("/"))
    for part in (
        f"Alert {alert.pk}: ONNX Runtime",
        "complete Run",
        "decoder v1 was uploaded by owner.",
        "2 releases of onnxruntime became known",
        "bench-1 joined the fleet.",
    ):
        assert part in words, part
    # the same visit goes on, and still says it
    assert has_news(signed_in)


def test_nothing_new_is_said_too(signed_in: Client, owner: User) -> None:
    was_here(signed_in, owner, minutes_ago=60)
    assert "No changes." in assert_is_page(signed_in.get("/"))


def test_a_long_visit_stays_one_visit(signed_in: Client, owner: User, run: Run) -> None:
    was_here(signed_in, owner, minutes_ago=29, before=24 * 60)
    words = assert_is_page(signed_in.get("/"))
    assert f"Run {run.pk} of encoder" in words
    was_here(signed_in, owner, minutes_ago=29)
    assert not has_news(signed_in)


def test_another_readers_or_a_forged_visit_counts_for_nothing(owner: User, member: User) -> None:
    client = client_of(member)
    was_here(client, owner, minutes_ago=60)
    assert not has_news(client)
    for forged in (f"{member.pk}:0:1", "x" * 999, ""):
        client.cookies[NAME] = forged
        assert not has_news(client)


def test_a_part_that_fills_in_by_itself_is_no_visit(signed_in: Client, owner: User) -> None:
    was_here(signed_in, owner, minutes_ago=60)
    assert NAME not in signed_in.get("/", headers={"hx-request": "true"}).cookies
    assert NAME in signed_in.get("/").cookies


def test_runtimes_say_where_each_release_is_installed_or_would_be(
    signed_in: Client, team: Team, owner: User, node: Node
) -> None:
    rows.make_node(team, owner, name="pi", providers=["CPUExecutionProvider", "OpenVINOExecutionProvider"])
    other = Node.objects.get(name="pi")
    other.runtimes = ["onnxruntime-openvino==1.24.1"]
    other.save()
    words = assert_is_page(signed_in.get("/runtimes/"))
    assert (
        f"onnxruntime: 2 of {len(ONNXRUNTIME)} releases installed somewhere; the newest is {ONNXRUNTIME[-1]}" in words
    )
    assert "installed bench-1 ; ○ on demand on 1 node" in words
    openvino = assert_is_page(signed_in.get("/runtimes/?distribution=onnxruntime-openvino"))
    assert "1.24.1" in openvino
    assert "OpenVINO" in openvino
    assert assert_is_page(signed_in.get("/runtimes/?distribution=nonsense")) == words


def test_runtimes_without_a_node_and_without_a_release(signed_in: Client) -> None:
    words = assert_is_page(signed_in.get("/runtimes/"))
    assert "No nodes yet" in words
    assert f"{len(ONNXRUNTIME)} releases known, no node" in words


def test_a_release_that_is_gone_but_installed_is_said(signed_in: Client, node: Node) -> None:
    offer("1.29.0", "1.30.0")
    assert "1.31.1 ▲ no longer on the index" in assert_is_page(signed_in.get("/runtimes/"))


def test_a_release_says_since_when_it_is_known_what_was_measured_with_it_and_what_alerted(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    rows.finished_run(version, node, owner)
    offer("1.29.0", "1.30.0", "1.31.1")
    Release.objects.filter(version="1.30.0").update(is_gone=True, is_yanked=True, yanked_because="wrong wheels")
    watch = make_watch(version, owner)
    alert = watching.bare_alert(watch, version, bad="1.31.1")
    watching.bare_round(watch, version, outcome="quiet", new="1.31.1")
    words = assert_is_page(signed_in.get("/runtimes/"))
    [newest] = re.findall(r"1\.31\.1 20\d\d.*?(?=1\.29\.0|1\.30\.0)", words)
    assert "1 run of 1 model on bench-1" in newest
    assert f"alert {alert.pk} ▲ encoder, open" in newest
    assert "= no change (1)" in newest
    assert f"1.29.0 reference of {watch.name}" in words
    assert f"Watched by {watch.name} against 1.29.0" in words
    assert "▲ yanked: wrong wheels" not in words
    node.runtimes = [*node.runtimes, "onnxruntime==1.30.0"]
    node.save()
    assert "1.30.0 ▲ yanked: wrong wheels" in assert_is_page(signed_in.get("/runtimes/"))


def test_strangers_see_no_nodes(stranger: User, node: Node) -> None:
    words = assert_is_page(client_of(stranger).get("/runtimes/"))
    assert "bench-1" not in words
    assert "of 1 model" not in words
