"""The report card of a release: what leads, who sees it, what is open, and what is no release."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from farm.accounts.models import Team, User
from farm.alerts.selectors.release_cards import read_card
from farm.alerts.states import AlertState
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.services import cancel_run, measure_more_rounds
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page
from tests.integration.runs.making import claim, make_node

pytestmark = pytest.mark.django_db
PAGE, API = "/releases/onnxruntime/1.31.1/", "/api/v1/releases/onnxruntime/1.31.1"
ONE = {"matrix": {**rows.MATRIX["matrix"], "batch": [1], "precision": ["fp32"]}, "budget": "quick"}


def pinned(node: str) -> dict[str, object]:
    return {**ONE, "matrix": {**ONE["matrix"], "hardware": [f"node:{node}"]}}


def test_a_slower_release_leads_with_its_model_and_leads_to_the_cell(signed_in: Client, run: Run) -> None:
    response = signed_in.get(PAGE)
    words = assert_is_page(response)
    assert re.search(r"encoder is 2[345](\.\d)? % slower with 1\.31\.1", words)
    assert "onnxruntime==1.31.1 Compared with 1.29.0" in words
    assert f"/runs/{run.pk}/cells/" in response.content.decode()
    told = signed_in.get(API).json()
    (model,) = told["models"]
    (node,) = model["nodes"]
    assert (told["against"], told["others"], model["is_clean"]) == ("onnxruntime==1.29.0", ["1.29.0"], False)
    assert (node["node"], node["kind"], node["points"], node["run"]) == ("bench-1", "slower", 4, run.pk)
    assert node["ci_low"] < node["ratio"] < node["ci_high"]


def test_where_nothing_changed_it_says_what_would_have_been_seen(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    rows.begin_run(rows.make_version(team, owner, name="decoder"), owner, matrix=ONE)
    response = signed_in.get(PAGE)
    words = assert_is_page(response)
    assert "Nothing slower or wrong found on 1 of 1 model (a change of" in words
    assert re.search(
        r"Still being measured: decoder ; about \d+ (s|min) left, until \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", words
    )
    told = signed_in.get(API).json()
    assert [one["model"] for one in told["open"]] == ["decoder"]
    assert (told["ends_at"] is None, told["ends_at_least"]) == (False, None)
    # "nobody can tell" stood beside the run's own "begins in at least about 65 s, about 65 s of measuring"
    Node.objects.filter(pk=node.pk).update(doing="`onnxfarm bench` has been measuring on this machine.")
    words = assert_is_page(signed_in.get(PAGE))
    assert re.search(r"decoder ; at least about \d+ (s|min) left, until \d{4}-\d\d-\d\d \d\d:\d\d UTC\.", words)
    told = signed_in.get(API).json()
    assert (told["ends_at"], told["ends_at_least"] is None) == (None, False)


def test_a_model_is_running_only_where_a_block_of_it_was_begun(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    """ "running" stood in the column of every node, also for a run that waited."""
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    other = make_node(team, name="bench-2")
    rows.finished_run(version, other, owner, matrix=pinned("bench-2"), slow={})
    block = rows.begin_run(rows.make_version(team, owner, name="decoder"), owner, matrix=pinned("bench-2")).blocks.get()

    def found() -> list[str]:
        (decoder,) = (row for row in read_card(owner, "onnxruntime", "1.31.1").card.rows if row.name == "decoder")
        return [decoder.on_node(name).sign.word for name in ("bench-1", "bench-2")]

    assert found() == ["not measured", "queued"]
    claim(other, block)
    assert found() == ["not measured", "running"]


def test_what_was_compared_stands_while_further_rounds_wait(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    run = rows.finished_run(version, node, owner, matrix=ONE, slow={})
    [before] = read_card(owner, "onnxruntime", "1.31.1").card.rows
    measure_more_rounds(run=run, by=owner, rounds=8, blocks=[block.number for block in run.blocks.all()])
    [found] = read_card(owner, "onnxruntime", "1.31.1").card.rows
    assert found.on_node(node.name).sign == before.on_node(node.name).sign
    assert found.open == {node.name: "queued"}


def test_wrong_outputs_and_lost_placement_have_their_own_colour(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    assert '<td class="">' in signed_in.get(PAGE).content.decode()
    rows.finished_run(version, node, owner, matrix=ONE, slow={}, wrong=True)
    assert '<td class="bad">' in signed_in.get(PAGE).content.decode()


def test_what_an_alert_alone_knows_stands_on_the_card(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    rows.finished_run(version, node, owner, matrix=ONE, slow={})
    other = rows.make_version(team, owner, name="decoder")
    alert = watching.bare_alert(make_watch(version, owner), other, bad="1.31.1")
    alert.symptoms.update(kind="parity", size=None)
    assert "decoder with 1.31.1: wrong outputs" in assert_is_page(signed_in.get(PAGE))
    alert.change(AlertState.INVALID)
    assert "decoder with" not in assert_is_page(signed_in.get(PAGE))


def test_the_work_around_that_was_run_stands_in_the_headline_and_as_code(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    alert = watching.found_by_a_watch(version, node, owner)
    response = signed_in.get("/releases/onnxruntime/1.30.0/")
    words, text = assert_is_page(response), response.content.decode()
    assert re.search(rf"encoder is 2[345](\.\d)? % slower: disable {watching.WANTED}", words), words[:900]
    assert f"disabled_optimizers=[&#x27;{watching.WANTED}&#x27;]" in text
    assert f'href="/alerts/{alert.pk}/"' in text
    (told,) = signed_in.get("/api/v1/releases/onnxruntime/1.30.0").json()["work_arounds"]
    assert (told["alert"], watching.WANTED in told["code"]) == (alert.pk, True)


def test_runs_beside_a_nearer_release_do_not_hide_what_an_alert_tells(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    """The page turned from "59 % slower" to "Nothing slower" once two other models were measured beside 1.30.0."""
    rows.finished_run(version, node, owner)
    watching.bare_alert(make_watch(version, owner), version, bad="1.31.1")
    nearer = {**ONE, "matrix": {**ONE["matrix"], "runtime": ["1.30.0", "1.31.1"]}}
    for name in ("decoder", "digits"):
        rows.finished_run(rows.make_version(team, owner, name=name), node, owner, matrix=nearer, slow={})
    words = assert_is_page(signed_in.get(PAGE))
    assert "Compared with 1.29.0" in words
    assert "encoder is" in words


def test_a_member_sees_the_models_of_their_own_teams_alone(stranger: User, run: Run) -> None:
    response = client_of(stranger).get(PAGE)
    words = assert_is_page(response)
    assert "ONNX Runtime 1.31.1 has not been compared with an older release yet" in words
    assert "encoder" not in response.content.decode()
    assert client_of(stranger).get(API).json()["models"] == []


def test_an_older_release_may_be_chosen_and_what_is_none_chooses_nothing(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    three = {"matrix": {**ONE["matrix"], "runtime": ["1.29.0", "1.30.0", "1.31.1"]}, "budget": "quick"}
    rows.finished_run(version, node, owner, matrix=three)
    for asked, against in (("", "1.30.0"), ("1.29.0", "1.29.0"), ("<script>", "1.30.0"), ("9" * 5000, "1.30.0")):
        assert f"Compared with {against}" in assert_is_page(signed_in.get(PAGE, {"against": asked}))


@pytest.mark.parametrize(
    "address",
    [
        "onnxruntime/9.9.9", "onnxruntime/%3Cscript%3E", "onnxruntime/1.31.1;x", "evil/1.0.0",
        "onnxruntime/" + "9" * 4000, "on%0Axruntime/1.31.1", "onnxruntime%20@%20http:x/1.31.1", "../1.31.1",
    ],
)  # fmt: skip
def test_a_hostile_version_is_a_page_in_words(signed_in: Client, address: str) -> None:
    response = signed_in.get(f"/releases/{address}/")
    assert_is_page(response, 404)
    assert signed_in.get(f"/api/v1/releases/{address}").status_code in (404, 422)


def test_a_release_that_nobody_measured_says_how_to(signed_in: Client, node: Node) -> None:
    offer("1.29.0", "1.99.0")
    words = assert_is_page(signed_in.get("/releases/onnxruntime/1.99.0/"))
    assert "ONNX Runtime 1.99.0 has not been compared with an older release yet" in words
    assert "onnxfarm watch add" in words


def test_a_model_of_which_a_cancelled_run_measured_nothing_is_not_counted(
    signed_in: Client, run: Run, node: Node, owner: User, team: Team
) -> None:
    other = rows.make_version(team, owner, name="unmeasured")
    cancel_run(run=rows.begin_run(other, owner, matrix=ONE), by=owner)
    words = assert_is_page(signed_in.get(PAGE))
    assert "unmeasured" not in words
    assert "Models 1 Nodes" in words


def test_a_model_that_was_measured_with_other_releases_alone_is_named_with_a_way_to_measure_it(
    signed_in: Client, run: Run, node: Node, owner: User, team: Team
) -> None:
    """The page said "Models 1" while two further models had never been measured with the release."""
    other = rows.make_version(team, owner, name="digits")
    older = {**ONE, "matrix": {**ONE["matrix"], "runtime": ["1.29.0"]}}
    rows.finished_run(other, node, owner, matrix=older)
    response = signed_in.get(PAGE)
    assert "Not measured with it: digits ." in assert_is_page(response)
    assert f'href="/runs/new/?version={other.pk}"' in response.content.decode()
    rows.finished_run(other, node, owner, matrix={**ONE, "matrix": {**ONE["matrix"], "runtime": ["1.31.1"]}})
    assert "Not measured with it" not in assert_is_page(signed_in.get(PAGE))


def test_it_takes_as_many_queries_for_many_models_as_for_few(
    signed_in: Client, version: Version, node: Node, owner: User, team: Team
) -> None:
    def asked() -> int:
        signed_in.get(PAGE)
        with CaptureQueriesContext(connection) as captured:
            assert signed_in.get(PAGE).status_code == 200
        return len(captured)

    def measure(name: str) -> None:
        own = rows.make_version(team, owner, name=name)
        rows.finished_run(own, rows.make_node(team, owner, name=f"on {name}"), owner, matrix=ONE)
        rows.finished_run(rows.make_version(team, owner, name=f"old-{name}"), node, owner, matrix=older)
        watching.bare_alert(watch, own, bad="1.31.1", node=f"on {name}")
        rows.begin_run(own, owner, matrix=ONE)

    older = {**ONE, "matrix": {**ONE["matrix"], "runtime": ["1.29.0"]}}
    watch = make_watch(version, owner)
    measure("a")
    few = asked()
    for name in "bcd":
        measure(name)
    assert asked() == few <= 35


def test_pages_about_a_release_lead_to_its_card(signed_in: Client, version: Version, node: Node, owner: User) -> None:
    offer("1.29.0", "1.31.1")
    watch = make_watch(version, owner)
    alert = watching.bare_alert(watch, version, bad="1.31.1")
    watching.long_series(watch, version, 3, step_at=1)
    for address in ("/fleet/runtimes/", f"/alerts/{alert.pk}/", f"/trends/?watch={watch.pk}"):
        assert f'href="{PAGE}"' in signed_in.get(address).content.decode(), address
