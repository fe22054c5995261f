"""How far numbers can be trusted, on pages: wishes in the plan, curves, energy, A/A pairs and their false alarms."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON
from farm.contract import document_cells as doc_cells
from farm.contract.cells import CellSpec
from farm.contract.reports import CheckReport, Sample
from farm.contract.sustained import Energy
from farm.fleet.models import Node, NullEstimate
from farm.registry.models import Version
from farm.runs import selectors
from farm.runs.models import CellDocument, Run
from farm.runs.selectors.paces import read_latencies
from farm.runs.services import plan_run
from tests.integration.dashboard import rows
from tests.integration.dashboard.pages import assert_is_page, words_of
from tests.integration.fleet.nulls import keep_null_estimate

pytestmark = pytest.mark.django_db
TWO = {"runtime": ["1.29.0", "1.31.1"], "threads": 1}


def keep_pairs(node: Node, *verdicts: str, block: int = 1_000_000) -> None:
    """A/A pairs of this node with these verdicts, and launches that differ by a percent."""
    for number, verdict in enumerate(verdicts):
        keep_null_estimate(
            node=node, cell_class="any", block=block + number, arms=(0, 1), rounds=8, estimate=0.001, verdict=verdict,
            log_ratios=[0.01, -0.01] * 4,
        )  # fmt: skip


# the plan


def test_the_form_says_what_a_wished_change_costs(signed_in: Client, version: Version, node: Node) -> None:
    keep_pairs(node, *["equal"] * 5)

    def plan(wish: str, budget: str = "standard") -> str:
        matrix = f"budget: {budget}\nmatrix:\n  runtime: [1.29.0, 1.31.1]\n"
        return words_of(signed_in.post("/runs/plan/", {"version": version.pk, "matrix": matrix, "wish": wish}))

    assert "3 % is detected in 95 of 100 blocks after" in plan("3%")
    assert "with `budget: standard`" in plan("2.7 %", "quick")
    assert "No number of rounds detects 1 %: changes within the margin of 2 %" in plan("1%")
    assert "wish is 'much': write the change to be seen, such as 3%" in plan("much")
    assert "95 of 100" not in plan("")


def test_a_wish_of_the_matrix_is_kept_with_the_run(signed_in: Client, version: Version, node: Node) -> None:
    matrix = "wish: 4%\nmatrix:\n  runtime: [1.29.0, 1.31.1]\n"
    assert "4 % is detected" in words_of(signed_in.post("/runs/plan/", {"version": version.pk, "matrix": matrix}))
    signed_in.post("/runs/new/", {"version": version.pk, "matrix": matrix, "seed": "0"})
    assert Run.objects.get().matrix["wish"] == pytest.approx(0.04)


def test_the_api_plans_a_wish_and_refuses_a_bad_one(client: Client, version: Version, node: Node, owner: User) -> None:
    _, secret = issue_token(owner, ALL_OF_A_PERSON)

    def ask(wish: object) -> tuple[int, dict[str, object]]:
        answer = client.post(
            "/api/v1/plan",
            {"version": version.pk, "matrix": TWO, "wish": wish},
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        return answer.status_code, answer.json()

    status, plan = ask("3%")
    assert status == 200
    (block,) = plan["blocks"]
    assert block["wish"]["change"] == pytest.approx(0.03)
    assert all(one["smallest_detectable"] for one in block["comparisons"])
    for bad in ("much", 7, "-1%"):
        status, answer = ask(bad)
        assert status in (400, 422)
        assert str(answer["detail"]).startswith("wish is ")


# curves and energy


def test_a_cell_that_worked_on_shows_its_curve_and_when_it_throttled(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    run = rows.finished_run(version, node, owner, matrix={**TWO, "sustained": 0.1})
    words = assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c1/"))
    assert "Throttles after 0.04 s: p50 stays 20 % above its first point" in words
    found = selectors.cell_document(run, "c1").sustained
    assert (len(found.points), found.throttle_s) == (6, 0.04)
    document = selectors.document(run)
    # the twin is the same cell and has no curve of its own
    assert [cell.id for cell in document.cells if cell.sustained] == ["c1", "c2"]
    assert run.matrix["matrix"]["scenario"] == ["sustained:0.1"]


def test_a_cell_without_a_curve_has_no_panel_for_one(signed_in: Client, run: Run) -> None:
    assert "sustained" not in assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c1/")).lower()


@pytest.mark.parametrize(
    ("energy", "shown"),
    [
        (Energy(mj=12.5, text="RAPL, 1 package(s): everything on it, over 3 s"), "energy per inference 12.5 mJ RAPL"),
        (Energy(text="not readable here: no RAPL"), "energy per inference not measured not readable here: no RAPL"),
        (None, "energy per inference not measured the node has energy readings disabled"),
    ],
)
def test_energy_is_shown_or_why_there_is_none(
    signed_in: Client, version: Version, node: Node, owner: User, energy: Energy | None, shown: str
) -> None:
    class Metered(rows.MadeUpNode):
        def _check(self, arm: object) -> CheckReport:
            return super()._check(arm).model_copy(update={"energy": energy})

    run = rows.finished_run(version, node, owner, matrix=TWO, kind=Metered)
    assert shown in assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/c1/"))
    assert selectors.cell_document(run, "c1").energy_mj == (energy.mj if energy else None)


def test_several_sessions_at_once_reach_the_document_and_the_pages(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    class Together(rows.MadeUpNode):
        def _sample(self, spec: CellSpec) -> Sample:
            """Each session's own latency; all of them together reach more a second than one alone."""
            sample = super()._sample(spec)
            streams = spec.workload.concurrency
            return sample.model_copy(update={"throughput": 0.8 * streams * 1000.0 / sample.mean_ms})

    # four sessions of one thread want four cores
    Node.objects.update(facts_json=node.facts_json | {"logical_cores": 4})
    node.refresh_from_db()
    matrix = {"runtime": "1.31.1", "concurrency": [1, 4], "batch": 8}
    run = rows.finished_run(version, node, owner, matrix=matrix, kind=Together)
    one, four = [cell for cell in selectors.document(run).cells if not cell.twin_of]
    assert (one.concurrency, four.concurrency) == (1, 4)
    assert one.throughput == pytest.approx(8 * 1000 / one.p50_ms)
    # batch × inferences per second of all four
    assert four.throughput == pytest.approx(8 * 0.8 * 4 * 1000 / four.p50_ms, rel=0.05)
    assert one.with_copies_p50_ms is None
    (compared,) = [c for c in selectors.document(run).comparisons if c.axis == "concurrency"]
    assert compared.rounds == 8
    assert "Concurrency 4" in assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/{four.id}/"))
    assert "concurrency" in words_of(signed_in.get(f"/runs/{run.pk}/"))


def test_copies_to_and_from_a_device_have_their_own_line() -> None:
    from dashboard.reading.cell import metric_table

    cell = doc_cells.Cell(
        id="c1", digest="d", model_sha256="a" * 64, runtime="onnxruntime-gpu==1.31.1", provider="CUDAExecutionProvider",
        precision="fp32", threads=1, status="done", p50_ms=1.0, with_copies_p50_ms=1.4,
    )  # fmt: skip
    names = {row[0].text: row[1].text for row in metric_table(cell).rows}
    assert names["with host copies"] == "1.40"
    on_cpu = metric_table(cell.model_copy(update={"with_copies_p50_ms": None}))
    assert "with host copies" not in {row[0].text for row in on_cpu.rows}


# plans


def test_a_plan_knows_how_slow_a_model_was_when_it_was_measured_last(version: Version, node: Node, owner: User) -> None:
    assert read_latencies(version) is None
    rows.finished_run(version, node, owner, matrix=TWO)
    quick = plan_run(version=version, matrix=TWO)
    assert read_latencies(version) is not None
    for row in CellDocument.objects.all():
        CellDocument.objects.filter(pk=row.pk).update(body=json.dumps({**json.loads(row.body), "p50_ms": 1300.0}))
    slow = plan_run(version=version, matrix=TWO)
    assert slow.minutes > 5 * quick.minutes
    # eight rounds of it fit into what is promised
    assert all((block.max_duration_s(8) or 0.0) > 8 * len(block.arms) * 3 * 1.3 for block in slow.blocks)
    for unread in ('{"p50_ms": null}', '{"p50_ms": "slow"}', "[]", "{}", "not JSON"):
        CellDocument.objects.update(body=unread)
        assert read_latencies(version) is None


# A/A pairs


def test_pairs_are_counted_node_by_node_and_new_nodes_have_one_in_every_block(version: Version, node: Node) -> None:
    owner = node.owner
    assert owner is not None

    def has_pair() -> bool:
        (block,) = plan_run(version=version, matrix=TWO).blocks
        return any(arm.twin_of is not None for arm in block.arms)

    assert has_pair(), "the node never had one"
    first = rows.finished_run(version, node, owner, matrix=TWO)
    assert NullEstimate.objects.filter(node=node, block=first.blocks.get().pk).exists()
    assert has_pair(), "it is its first day"
    Node.objects.update(created_at=node.created_at - timedelta(days=2))
    assert not has_pair(), "the last block had one"
    for _ in range(7):
        assert not has_pair()
        rows.finished_run(version, node, owner, matrix=TWO)
    assert has_pair(), "seven blocks went by without"


def test_the_fleet_page_has_the_live_false_alarm_rate_with_its_bound(
    signed_in: Client, node: Node, version: Version, owner: User
) -> None:
    assert "False-positive rate: not measured yet" in assert_is_page(signed_in.get("/fleet/"))
    other = rows.make_node(node.team, owner, name="bench-2")
    keep_pairs(node, *["equal"] * 30, "slower")
    keep_pairs(other, *["undecided"] * 9, block=2_000_000)
    words = assert_is_page(signed_in.get("/fleet/"))
    # Clopper–Pearson of 1 in 40: 0.063 % to 13.16 %
    assert "1 of 40 A/A pairs was called slower or faster, 2.5 %" in words
    assert "95 % Clopper–Pearson interval < 0.1 % to 13 %" in words


def test_pairs_of_nodes_that_the_reader_may_not_see_do_not_count(client: Client, node: Node, stranger: User) -> None:
    keep_pairs(node, "slower")
    client.force_login(stranger)
    assert "called slower or faster" not in assert_is_page(client.get("/fleet/"))


# comparisons


def compared_rows(page: str) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the run page's table of comparisons, as visible words."""
    table = page[page.index('<table id="compared-pairs"') :]
    table = table[: table.index("</table>")]

    def words(html_cells: list[str]) -> list[str]:
        plain = [html.unescape(re.sub(r"<[^>]+>", " ", cell)).replace("\N{NO-BREAK SPACE}", " ") for cell in html_cells]
        return [" ".join(cell.split()) for cell in plain]

    heads = words(re.findall(r"<th scope=\"col\".*?</th>", table, re.DOTALL))
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", table, re.DOTALL)
    return heads, [words(re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row, re.DOTALL)) for row in rows]


def test_every_comparison_of_a_run_shows_interval_rounds_noise_floor_and_what_it_could_see(signed_in: Client, run: Run):
    document = selectors.document(run)
    shown = 0
    for axis in {one.axis for one in document.comparisons}:
        heads, lines = compared_rows(signed_in.get(f"/runs/{run.pk}/?along={axis}").content.decode())
        assert len(lines) == sum(one.axis == axis for one in document.comparisons)
        for line in lines:
            found = dict(zip(heads, line, strict=True))
            # a large change is a factor, as in the sentence above it
            assert re.fullmatch(r".*\d .* to .*\d .*|[\d.]+–[\d.]+( %|×)( \w+)?", found["95 % interval"])
            assert int(found["rounds"]) >= 8
            # the first block of a node: its own pair tells
            assert re.fullmatch(r"[\d.]+ % block", found["noise floor"])
            assert re.fullmatch(r"± [\d.]+ %", found["margin"])
            assert re.fullmatch(r"[\d.]+ %", found["smallest detectable"])
            shown += 1
    assert shown == len(document.comparisons) > 8


def test_the_noise_floor_of_a_node_with_a_history_is_its_own(
    signed_in: Client, run: Run, version: Version, node: Node, owner: User
) -> None:
    later = rows.finished_run(version, node, owner, matrix=TWO)
    (compared,) = [one for one in selectors.document(later).comparisons if one.axis == "runtime"]
    assert compared.noise_from == "node"
    assert compared.noise is not None
    # two launches that differ by 0.6 % each
    assert 0.004 < compared.noise < 0.016
