"""The page of a run, from its first second to its verdict."""

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.presenting.answers import make_answer
from farm.runs import selectors
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import UNBROKEN, assert_is_page

pytestmark = pytest.mark.django_db


def verdict_of(text: str) -> str:
    found = re.search(r'<h1 class="verdict">(.*?)</h1>', text, re.DOTALL)
    return UNBROKEN.sub(r"\1", found[1]).replace("\N{NO-BREAK SPACE}", " ")


def test_a_finished_run_opens_with_what_a_release_slowed_how_sure_and_through_what(signed_in: Client, run: Run) -> None:
    response = signed_in.get(f"/runs/{run.pk}/")
    words = assert_is_page(response)
    verdict = verdict_of(response.content.decode())
    assert re.fullmatch(r"encoder: ONNX Runtime 1\.31\.1 is up to 2\d(\.\d)? % slower than 1\.29\.0", verdict)
    assert re.search(r"95 % interval ×?[\d.]+–[\d.]+( %)?, 8 rounds · CPU, .* on bench-1", words)
    assert re.search(r"SkipLayerNormalization explains (\d+ %|all) of the ", words)


def test_the_page_and_the_document_open_with_the_same_change(signed_in: Client, run: Run) -> None:
    document = selectors.document(run)
    assert run.headline == document.sentence
    words = assert_is_page(signed_in.get(f"/runs/{run.pk}/")).replace("\N{NO-BREAK SPACE}", " ")
    told = make_answer(document)
    assert all(part in words for part in (told.headline, told.because, told.rest))


def test_every_cell_of_the_map_is_a_link_with_a_sign_and_a_word(signed_in: Client, run: Run) -> None:
    text = signed_in.get(f"/runs/{run.pk}/").content.decode()
    heat = text[text.index('class="heat') : text.index("</table>")]
    assert heat.count(f'href="/runs/{run.pk}/cells/') == 8
    assert heat.count("▲") == 4
    assert heat.count("slower") >= 4
    assert heat.count("baseline") == 4


def test_each_chart_has_its_address_a_finding_and_a_table(signed_in: Client, run: Run) -> None:
    for chart in ("comparisons", "latency", "operators", "providers", "throughput", "nonsense"):
        response = signed_in.get(f"/runs/{run.pk}/?chart={chart}")
        assert_is_page(response)
        text = response.content.decode()
        figure = text[text.index("<figure") : text.index("</figure>")]
        assert re.search(r"<h3[^>]*>[^<]{10,}</h3>", figure), chart
        assert 'role="img"' in figure
        assert '<script type="application/json"' in figure
        assert "<table" in figure


def test_the_view_is_part_of_the_address(signed_in: Client, run: Run) -> None:
    for query in ("metric=p50&columns=batch", "metric=memory", "along=precision", "pair=a~b&chart=operators"):
        assert_is_page(signed_in.get(f"/runs/{run.pk}/?{query}"))


def test_the_page_costs_as_many_queries_for_one_cell_as_for_many(
    signed_in: Client,
    run: Run,
    version: Version,
    node: Node,
    owner: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    matrix = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1], "threads": [1]}}
    small = rows.finished_run(version, node, owner, matrix=matrix)
    for one in (small, run):
        with django_assert_num_queries(22, exact=False):  # type: ignore[call-arg]
            signed_in.get(f"/runs/{one.pk}/")


def test_a_run_of_the_farms_own_says_why_there_is_one_and_is_no_latest_result(signed_in: Client, run: Run) -> None:
    assert f"/runs/{run.pk}/" in signed_in.get("/").content.decode()
    Run.objects.filter(pk=run.pk).update(reason="confirmation")
    run.touch()
    assert "Started by a watch that has since been removed." in assert_is_page(signed_in.get(f"/runs/{run.pk}/"))
    assert "Better or worse" not in signed_in.get("/").content.decode()


def test_cells_that_ran_elsewhere_or_wrongly_are_named_before_any_number(
    signed_in: Client, team: Team, owner: User, version: Version
) -> None:
    node = rows.make_node(team, owner, providers=("CPUExecutionProvider", "OpenVINOExecutionProvider"))
    matrix = {"matrix": {"runtime": ["onnxruntime-openvino==1.24.1"], "provider": ["openvino"], "batch": [1, 8]}}
    run = rows.finished_run(version, node, owner, matrix=matrix, elsewhere=True, wrong=True)
    words = assert_is_page(signed_in.get(f"/runs/{run.pk}/"))
    assert "Not as asked: 2 cells ran on other providers than requested" in words
    assert words.index("Wrong outputs: 2 of 2 cells") < words.index("Not as asked") < words.index("Model file digest")
    cell = assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c1/"))
    assert "OpenVINO was requested but did not start" in cell
    assert cell.index("not as asked") < cell.index("ms ±")


def test_the_verdict_of_a_comparison_stands_under_its_candidate_alone(signed_in: Client, run: Run) -> None:
    """ "▲ slower" stood under the baseline that something else is slower than."""
    under = {
        name: re.search(
            r'<p class="because">(.*?)</p>', signed_in.get(f"/runs/{run.pk}/cells/{name}/").content.decode()
        )
        for name in ("c1", "c5")
    }
    assert "▲ slower: ONNX Runtime 1.31.1 runs" in under["c5"][1]
    assert under["c1"][1].startswith("Baseline: ")
    assert "▲" not in under["c1"][1]


def test_a_crashed_cell_has_its_reason_on_its_page(signed_in: Client, version: Version, node: Node, owner: User):
    run = rows.finished_run(version, node, owner, crashes=[1])
    assert "crashed" in assert_is_page(signed_in.get(f"/runs/{run.pk}/"))
    crashed = run.cells.get(status="crashed")
    words = assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/{crashed.name}/"))
    assert "The runner ended by signal 11 (SIGSEGV)." in words


def test_a_cells_page_has_its_numbers_operators_facts_log_and_command(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c5/"))
    for part in (
        "encoder on ONNX Runtime 1.31.1, CPU, batch 1, fp32: 0.6",
        "launches within",
        "session creation 40.0 ms",
        "peak memory 91 MiB",
        "/layers.0/norm/LayerNormalization",
        "SkipLayerNormalization",
        "Correctness ✓ pass",
        "Example CPU",
        "loaded encoder.onnx",
        "onnxfarm bench encoder.onnx --ort 1.31.1 --provider CPUExecutionProvider --batch 1",
        "shown from 662 timings on",
        "A/A twin",
    ):
        assert part in words, part


def test_a_cell_that_is_still_measured_has_a_page(signed_in: Client, begun: Run, node: Node) -> None:
    assert "waiting for its block" in assert_is_page(signed_in.get(f"/runs/{begun.pk}/cells/c1/"))
    rows.MadeUpNode(node).measure(begun, most_rounds=2)
    assert "being measured" in assert_is_page(signed_in.get(f"/runs/{begun.pk}/cells/c1/"))


def test_a_cell_that_is_not_there_is_a_helpful_404(signed_in: Client, run: Run) -> None:
    assert "has no cell 'c99'" in assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c99/"), 404)


def test_cancelling_keeps_what_is_done_and_says_who_did_it(signed_in: Client, begun: Run) -> None:
    response = signed_in.post(f"/runs/{begun.pk}/cancel/", follow=True)
    words = assert_is_page(response)
    assert "Cancelled." in words
    assert "Cancelled by owner" in words


def test_more_rounds_of_a_decided_run_go_on_at_its_node(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.post(f"/runs/{run.pk}/more/", {"rounds": "8"}, follow=True))
    assert "8 more rounds were queued." in words
    run.refresh_from_db()
    assert run.state == "running"


@pytest.mark.parametrize("rounds", ["", "-1", "0", "nan", "9999999", "²"])
def test_a_count_of_rounds_that_is_none_is_refused_in_a_sentence(signed_in: Client, run: Run, rounds: str) -> None:
    words = assert_is_page(signed_in.post(f"/runs/{run.pk}/more/", {"rounds": rounds}, follow=True))
    assert "more rounds cannot be measured" in words


def test_a_member_may_run_and_a_viewer_may_only_look(run: Run, member: User, viewer: User) -> None:
    assert "More rounds" in assert_is_page(client_of(member).get(f"/runs/{run.pk}/"))
    looking = client_of(viewer)
    assert "More rounds" not in assert_is_page(looking.get(f"/runs/{run.pk}/"))
    words = assert_is_page(looking.post(f"/runs/{run.pk}/cancel/", follow=True))
    assert "You can view run" in words


def test_a_stranger_sees_neither_the_run_nor_its_cells(run: Run, stranger: User) -> None:
    client = client_of(stranger)
    for address in (f"/runs/{run.pk}/", f"/runs/{run.pk}/cells/c1/", f"/runs/{run.pk}/?part=live"):
        assert_is_page(client.get(address), 404)
    assert f"run {run.pk}" not in assert_is_page(client.get("/runs/"))
    assert_is_page(client.post(f"/runs/{run.pk}/cancel/"), 404)


def test_somebody_who_has_not_signed_in_is_asked_to(run: Run, client: Client) -> None:
    response = client.get(f"/runs/{run.pk}/")
    assert response.status_code == 302
    assert response["Location"] == f"/sign-in/?next=/runs/{run.pk}/"
