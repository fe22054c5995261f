"""A run's page agrees with itself at each of the run's states: what is refused, counted, measured and cancelled."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import Membership, Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs import selectors, services
from farm.runs.models import Block, Run
from farm.runs.selectors.pages import open_runs
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, words_of

pytestmark = pytest.mark.django_db

HALF_REFUSED: dict[str, Any] = {**rows.MATRIX, "matrix": {**rows.MATRIX["matrix"], "provider": ["cpu", "cuda"]}}


@pytest.fixture
def half(version: Version, node: Node, owner: User) -> Run:
    """A run that waits for a node: 8 cells, and 8 points that the plan refused."""
    return rows.begin_run(version, owner, matrix=HALF_REFUSED)


def page_of(client: Client, run: Run) -> str:
    return assert_is_page(client.get(f"/runs/{run.pk}/"))


def map_of(client: Client, run: Run) -> str:
    """The heat map's part of the page."""
    text = client.get(f"/runs/{run.pk}/").content.decode()
    return text[text.index('id="map"') : text.index("</section>", text.index('id="map"'))]


def test_nothing_has_ended_before_anything_began(signed_in: Client, half: Run, owner: User) -> None:
    words = page_of(signed_in, half)
    assert "0 of 8 cells ended, 8 refused; 0 of 8 rounds measured" in words
    told = selectors.progress(half)
    assert (told.counts.ended, told.counts.planned) == (0, 8)
    assert [(run.pk, ended, planned) for run, ended, planned in open_runs(owner)] == [(half.pk, 0, 8)]
    assert "0 of 8" in words_of(signed_in.get("/"))


def test_rounds_that_are_measured_and_the_round_that_is_measured_are_told_apart(
    signed_in: Client, half: Run, node: Node
) -> None:
    rows.MadeUpNode(node).measure(half, most_rounds=2)
    Block.objects.filter(node=node).update(doing="round 3: onnxruntime==1.31.1, int8-dynamic, arm 2")
    half.touch()
    words = page_of(signed_in, half)
    assert "2 of 8 rounds measured" in words
    assert "round 3: onnxruntime==1.31.1" in words
    # "round 2 of 8" above "round 3: …" would be two claims about one moment
    assert not re.search(r"\bround 2\b", words)


def test_launches_so_far_are_no_cells_that_have_ended(signed_in: Client, half: Run, node: Node) -> None:
    rows.MadeUpNode(node).measure(half, most_rounds=3)
    words = page_of(signed_in, half)
    assert words.count("3 rounds so far") == 8
    assert "0 of 8 cells ended" in words
    assert "No cell has a latency" not in words


def test_rows_that_were_refused_stand_last_and_every_point_is_in_the_matrix(
    signed_in: Client, half: Run, node: Node
) -> None:
    rows.MadeUpNode(node).measure(half, most_rounds=3)
    shown = map_of(signed_in, half)
    assert shown.rindex("rounds so far") < shown.index("refused")
    assert "not in the matrix" not in shown


def rows_of(client: Client, run: Run) -> list[str]:
    """What the rows of the map are called."""
    return re.findall(r'<th scope="row">([^<]+)</th>', map_of(client, run))


def test_a_row_of_the_map_is_called_the_same_before_while_and_after_it_is_measured(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    """A cell that had not ended was "opset unknown", so that 20 points of its row were "not in the matrix"."""
    axes = {"runtime": ["1.20.0", "1.29.0", "1.31.1"], "precision": ["fp32", "int8-dynamic"], "threads": [1, 64]}
    run = rows.begin_run(version, owner, matrix={"budget": "quick", "matrix": axes})
    made, named = rows.MadeUpNode(node), [rows_of(signed_in, run)]
    made.measure(run, most_rounds=2)
    named.append(rows_of(signed_in, run))
    assert "not in the matrix" not in map_of(signed_in, run)
    made.resume(run)
    named.append(rows_of(signed_in, run))
    assert named[0] == named[1] == named[2]
    assert not any("opset" in row for row in named[0])


def test_a_round_that_was_reported_is_not_said_to_be_measured(signed_in: Client, half: Run, node: Node) -> None:
    """ "1 of 8 rounds measured" stood above "round 1: …", the last word of a node that had reported it."""
    rows.MadeUpNode(node).measure(half, most_rounds=1)
    Block.objects.filter(node=node).update(doing="round 1: onnxruntime==1.31.1, int8-dynamic, arm 2")
    half.touch()
    words = page_of(signed_in, half)
    assert "1 of 8 rounds measured" in words
    assert "round 1: onnxruntime" not in words
    assert selectors.progress(half).doing == ()
    Block.objects.filter(node=node).update(doing="round 2: onnxruntime==1.31.1, int8-dynamic, arm 2")
    assert len(selectors.progress(half).doing) == 1


def test_a_run_that_was_cancelled_does_not_ask_for_more_values(signed_in: Client, half: Run) -> None:
    words = assert_is_page(signed_in.post(f"/runs/{half.pk}/cancel/", follow=True))
    assert "no block measured two cells" in words
    assert "give at least one axis" not in words


def test_a_model_whose_last_run_measured_nothing_says_no_time_of_it(signed_in: Client, half: Run, node: Node) -> None:
    def says_when() -> bool:
        text = signed_in.get("/models/").content.decode()
        return re.search(r'data-label="Measured"[^>]*><time', text) is not None

    assert not says_when()
    assert_is_page(signed_in.post(f"/runs/{half.pk}/cancel/", follow=True))
    assert not says_when()
    measured = rows.finished_run(half.version, node, half.requested_by)
    assert measured.finished_at is not None
    assert says_when()


def test_a_model_that_is_measured_again_keeps_what_its_newest_finished_run_found(
    signed_in: Client, half: Run, node: Node
) -> None:
    """The verdict of the run before was gone for as long as a later one waited."""
    before = rows.finished_run(half.version, node, half.requested_by)
    again = rows.begin_run(half.version, half.requested_by)
    text = signed_in.get("/models/").content.decode()
    (row,) = re.findall(r"<tr.*?</tr>", text.partition("<tbody>")[2].partition("</tbody>")[0], re.DOTALL)
    measured = re.search(r'data-label="Measured".*?</td>', row, re.DOTALL)
    assert f"/runs/{again.pk}/" in row
    assert before.lead["verdict"] in row
    assert measured is not None
    assert "<time" in measured[0]
    assert f"run {before.pk}" in measured[0]


def test_a_cancelled_run_s_log_says_once_who_cancelled_it(signed_in: Client, half: Run) -> None:
    assert_is_page(signed_in.post(f"/runs/{half.pk}/cancel/", follow=True))
    texts = list(half.events.values_list("text", flat=True))
    assert len(texts) == len(set(texts))


def test_a_blocks_copy_of_its_baseline_is_no_row_of_its_own(signed_in: Client, half: Run, node: Node) -> None:
    rows.MadeUpNode(node).measure(half)
    assert "twin" not in map_of(signed_in, half)


def test_a_cancelled_cell_has_its_state_and_no_median(signed_in: Client, half: Run) -> None:
    assert_is_page(signed_in.post(f"/runs/{half.pk}/cancel/", follow=True))
    shown = map_of(signed_in, half)
    assert shown.count("cancelled") >= 8
    assert not re.search(r"\d ms", shown)


def test_a_cell_that_was_cancelled_after_a_round_has_its_figure_and_says_so(
    signed_in: Client, half: Run, node: Node
) -> None:
    """Cancelling promised that what was measured stays, and its cells had no figure afterwards."""
    rows.MadeUpNode(node).measure(half, most_rounds=3)
    assert_is_page(signed_in.post(f"/runs/{half.pk}/cancel/", follow=True))
    assert services.settle(block_id=half.blocks.get().pk, attempt=1)
    shown = map_of(signed_in, half)
    assert "cancelled" not in shown
    assert len(re.findall(r"\d ms", shown)) >= 8
    cell = half.cells.filter(status="done").first()
    assert cell is not None
    for path in (f"/runs/{half.pk}/", f"/runs/{half.pk}/cells/{cell.name}/"):
        assert "3 rounds were measured before." in assert_is_page(signed_in.get(path))


def test_what_was_refused_stands_once_with_a_button_that_starts_a_run_with_its_way_out(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    axes = {"runtime": ["1.20.0"], "policy": ["none", "max-performance"], "threads": [1, 2]}
    run = rows.begin_run(version, owner, matrix={"budget": "quick", "matrix": axes})
    rows.MadeUpNode(node).measure(run)
    text = signed_in.get(f"/runs/{run.pk}/").content.decode()
    section = text[text.index('id="cells"') : text.index("</section>", text.index('id="cells"'))]
    assert section.count("data-refusal") == 1
    assert section.count("follows no policy") == 1
    assert section.count("⊘") == 0
    assert section.count('href="/docs/reference/refusals#not_supported"') == 1
    sent = dict(re.findall(r'<input type="hidden" name="(version|seed|matrix)" value="([^"]*)">', section))
    started = signed_in.post("/runs/new/", {name: html.unescape(value) for name, value in sent.items()})
    again = Run.objects.latest("pk")
    assert started["Location"] == f"/runs/{again.pk}/"
    assert again.matrix["matrix"]["runtime"] == ["onnxruntime==1.20.0", "onnxruntime==1.32.0"]
    assert again.cells.exclude(status="refused").count() == run.cells.exclude(status="refused").count() + 4
    assert {cell.way_out and cell.way_out.axis for cell in selectors.document(run).cells} == {None, "runtime"}
    # each refused cell offers the same where it stands alone, one that was measured nothing
    refused = run.cells.filter(status="refused").latest("pk").name
    assert sent["matrix"] in signed_in.get(f"/runs/{run.pk}/cells/{refused}/").content.decode()
    assert "data-way" not in signed_in.get(f"/runs/{run.pk}/cells/c1/").content.decode()


def test_what_no_change_of_the_matrix_measures_leads_to_a_machine_that_would(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    axes = {"runtime": ["1.31.1"], "provider": ["cpu", "cuda"]}
    run = rows.begin_run(version, owner, matrix={"budget": "quick", "matrix": axes})
    text = signed_in.get(f"/runs/{run.pk}/").content.decode()
    assert re.search(r'<a class="button copy" data-way href="/fleet/">Add a node</a>', text)


def test_a_model_with_operators_of_its_own_and_a_cell_that_failed_have_a_button_too(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    failed = rows.finished_run(version, node, owner, crashes=[1])
    cell = next(cell.id for cell in selectors.document(failed).cells if cell.status == "crashed")
    text = signed_in.get(f"/runs/{failed.pk}/cells/{cell}/").content.decode()
    form = html.unescape(re.search(r'data-way href="([^"]*)"', text)[1])
    assert assert_is_page(signed_in.get(form))
    assert f"like={failed.pk}&cell={cell}" in form
    version.inspection = {**version.inspection, "custom_domains": ["their.own"]}
    version.save()
    run = rows.begin_run(version, owner)
    assert re.search(r'data-way href="/models/upload/"', signed_in.get(f"/runs/{run.pk}/").content.decode())


def test_whoever_may_only_look_gets_no_button(version: Version, node: Node, owner: User, team: Team) -> None:
    axes = {"runtime": ["1.20.0", "1.31.1"], "policy": ["none", "max-performance"]}
    run = rows.begin_run(version, owner, matrix={"budget": "quick", "matrix": axes})
    viewer = User.objects.create_user("viewer")
    Membership.objects.create(team=team, user=viewer, role="viewer")
    text = client_of(viewer).get(f"/runs/{run.pk}/").content.decode()
    assert "data-refusal" in text
    assert "data-way" not in text
