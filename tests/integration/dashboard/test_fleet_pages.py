"""The fleet and the page of a node."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from dashboard.views.fleet import draw_qr_code
from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth, NodeState
from farm.registry.models import Version
from farm.rules.planning.time_left import format_about
from farm.rules.wording import numbers
from farm.runs.models import Report, Run
from farm.runs.selectors.outlooks import outlook_of
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, words_of

pytestmark = pytest.mark.django_db
IN_2_H = timezone.now() + timedelta(hours=2)


def test_a_nodes_page_shows_facts_tags_noise_and_log(signed_in: Client, run: Run, node: Node) -> None:
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    for part in (
        "bench-1 is online",
        "Example CPU",
        "24.0 GB",
        "probe trace: 3 nodes",
        "Identical launches differ by",
        "landlock",
    ):
        assert part in words, part


def test_lists_show_the_tags_that_work_asks_for_and_fold_the_instruction_sets(signed_in: Client, node: Node) -> None:
    sets = {name: f"the processor lists {name}" for name in ("avx2", "fma", "sse4_2")}
    node.tags |= sets
    node.owner_tags = ["fma", "lab"]
    node.facts_json |= {"instruction_sets": list(sets)}
    node.save()
    response = signed_in.get("/fleet/")
    assert "cpu, fma, lab, x86 and 2 instruction sets" in words_of(response)
    assert 'title="avx2, sse4_2"' in response.content.decode()


def test_a_node_that_has_measured_nothing_says_so(signed_in: Client, node: Node) -> None:
    assert "Not known yet. Every block of its first day" in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))


def test_a_machine_that_waits_for_approval_is_named_in_the_heading(
    signed_in: Client, node: Node, team: Team, owner: User
) -> None:
    pi = rows.make_node(team, owner, name="pi", health=NodeHealth.PENDING)
    page = signed_in.get("/fleet/")
    assert "of 1 node online; pi waits for approval" in assert_is_page(page)
    # its row leads to the fingerprint that is compared before it is approved
    assert f'href="/fleet/{pi.pk}/">Approve</a>' in page.content.decode()


def test_the_fleet_says_what_waits_and_when_a_block_queued_now_starts(
    signed_in: Client, version: Version, owner: User, node: Node
) -> None:
    assert "1 of 1 node online; nothing waits" in assert_is_page(signed_in.get("/fleet/"))
    run = rows.begin_run(version, owner)
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "1 of 1 node online; 1 block waiting" in words
    minutes = run.blocks.get().plan.minutes
    assert f"cpu 1 0 1 {numbers.duration(round(60 * minutes))} in {format_about(60 * minutes)}" in words
    rows.MadeUpNode(node).measure(run, most_rounds=4)
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "1 of 1 node online; 1 block being measured" in words
    assert f"cpu 0 1 1 {numbers.duration(round(outlook_of(run.pk).left_s or 0.0))} " in words
    node.state = NodeState.OFFLINE
    node.save()
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "0 of 1 node online" in words
    assert "when a node that takes them comes online" in words


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"is_paused": True}, "paused by"),
        ({"hours": f"{IN_2_H:%H:%M}-{IN_2_H + timedelta(hours=1):%H:%M}"}, "outside its owner's hours until"),
    ],
)
def test_a_node_that_its_owner_keeps_says_so_wherever_its_blocks_wait(
    signed_in: Client, version: Version, owner: User, node: Node, limits: dict[str, object], why: str
) -> None:
    """ "1 of them for hardware that no node online has" stood above a row "online, active", and on its page nothing."""
    run = rows.begin_run(version, owner)
    Node.objects.filter(pk=node.pk).update(settings_json=limits)
    words = assert_is_page(signed_in.get("/fleet/"))
    assert "1 block waiting, 1 of them that no node online takes now" in words
    assert f"not yet: bench-1 is online but {why}" in words
    assert words.count(why) == 3, "in the headline, the queue, and the row of the node"
    assert f"bench-1 is online but {why}" in assert_is_page(signed_in.get(f"/runs/{run.pk}/"))
    words = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert f"run {run.pk} when it takes blocks again" in words
    assert "1 block waits" in words


def test_an_invitation_shows_the_command_once(signed_in: Client, settings: Settings) -> None:
    # no phone reaches an address of this machine alone
    assert "as a QR code" not in signed_in.post("/fleet/invite/").content.decode()
    settings.PUBLIC_URL = settings.GATEWAY_URL = "https://farm.example.org"
    response = signed_in.post("/fleet/invite/")
    assert "ofe_" in assert_is_page(response)
    page = response.content.decode()
    (link,) = set(re.findall(r'href="([^"]+/tab/index\.html#ofe_[^"]+)"', page))
    # the same link for the camera of a phone: its modules are those of the link and of no other
    assert draw_qr_code(unescape(link)) in page
    assert draw_qr_code(f"{link}x") not in page
    assert "ofe_" not in words_of(signed_in.get("/fleet/"))


def test_a_pending_node_shows_its_fingerprint_and_is_approved_by_its_owner(signed_in: Client, team: Team, owner: User):
    node = rows.make_node(team, owner, health=NodeHealth.PENDING)
    assert node.fingerprint in assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    words = assert_is_page(signed_in.post(f"/fleet/{node.pk}/approve/", follow=True))
    assert "bench-1 is approved." in words
    node.refresh_from_db()
    assert node.health == NodeHealth.ACTIVE


def test_an_order_that_does_not_fit_is_refused_in_a_sentence(signed_in: Client, node: Node) -> None:
    assert "there is nothing to approve" in assert_is_page(signed_in.post(f"/fleet/{node.pk}/approve/", follow=True))
    assert_is_page(signed_in.post(f"/fleet/{node.pk}/explode/"), 404)
    for order in ("drain", "resume", "revoke"):
        assert_is_page(signed_in.post(f"/fleet/{node.pk}/{order}/", follow=True))


def test_a_viewer_sees_the_node_but_no_orders(viewer: User, node: Node) -> None:
    client = client_of(viewer)
    assert "Drain" not in assert_is_page(client.get(f"/fleet/{node.pk}/"))
    assert "may" in assert_is_page(client.post(f"/fleet/{node.pk}/drain/", follow=True))
    node.refresh_from_db()
    assert node.health == NodeHealth.ACTIVE


def test_a_nodes_heading_says_what_it_does_and_that_others_keep_its_machine_busy(
    signed_in: Client, run: Run, node: Node
) -> None:
    """It said "online", while other programs used all of the processor."""
    page = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert "bench-1 is online, idle" in page
    assert "1 block in 7 days" in page
    assert "keep its machine busy" not in page
    for report in Report.objects.filter(kind="facts"):
        body = json.loads(report.body)
        body["facts"]["more"] = {"load": {"busy_share": 0.97}}
        Report.objects.filter(pk=report.pk).update(body=json.dumps(body))
    page = assert_is_page(signed_in.get(f"/fleet/{node.pk}/"))
    assert "bench-1 is online; other programs keep its machine busy" in page
    assert "kept it busy before its last block, so verdicts of one thread rest on CPU time" in page
