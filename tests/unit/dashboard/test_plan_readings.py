"""What pages read from a plan: pure, in words."""

from dashboard.reading.cell import list_open_cells
from dashboard.reading.refusals import Button, group_refusals
from dashboard.views.new_run import list_warnings, make_block_table, write_summary
from dashboard.views.new_run import make_cell_table as plan_cells
from farm.rules.matrices import matrix as matrices
from farm.rules.planning import planner
from farm.rules.planning.plans import NodeOffer, Plan
from farm.rules.presenting.tables import Entry
from farm.rules.runtimes.models import ModelFacts

FACTS = ModelFacts(bundle_sha256="a" * 64, main_sha256="b" * 64, opsets={"": 17}, batch="batch")


def a_plan(**options: object) -> Plan:
    matrix = matrices.from_options(matrices.default_matrix(), **options)
    return planner.plan(matrix, FACTS, [NodeOffer(id="1", name="bench-1")], seed=0, with_null_pair=True)


def test_open_cells_come_from_the_plan_of_their_block() -> None:
    plan = a_plan()
    cells_, states = list_open_cells([("leased", plan.blocks[0])], known={"c1"}, models=[FACTS])
    assert "c1" not in states
    assert set(states.values()) == {"measuring"}
    assert {str(cell.runtime) for cell in cells_} == {"onnxruntime==1.29.0", "onnxruntime==1.31.1"}
    assert {(cell.model_sha256, cell.opset) for cell in cells_} == {("b" * 64, 17)}
    _, waiting = list_open_cells([("queued", plan.blocks[0])], known=(), models=[FACTS])
    assert set(waiting.values()) == {"queued"}


def test_a_plan_says_cells_blocks_time_and_what_will_not_run() -> None:
    plan = a_plan(provider="cpu,cuda")
    assert write_summary(plan).startswith("8 cells in 1 block, about ")
    assert write_summary(plan).endswith("on one node; 8 points refused.")
    table = make_block_table(plan, {"1": "bench-1"})
    assert table.rows[0][2].text == "bench-1"
    assert table.rows[0][5].text.endswith(" %")
    found = group_refusals(plan.refused, lambda point: Entry(point.id))
    assert sum(len(group.points) for group in found) == 8 > len(found)
    assert len(plan_cells(plan).rows) == 8


def test_a_plan_says_which_noise_it_had_to_assume() -> None:
    assert list_warnings(a_plan())[0].startswith("The smallest changes assume that identical launches differ by 1.5 %")
    [block] = a_plan().blocks
    loud = block.model_copy(update={"noise": 0.05, "is_noise_assumed": False})
    assert list_warnings(Plan(budget="quick", blocks=[block, loud])) == list_warnings(a_plan())
    known = NodeOffer(id="1", noise=0.007)
    assert list_warnings(planner.plan(matrices.default_matrix(), FACTS, [known], seed=0)) == []


def test_a_plan_of_nothing_says_so() -> None:
    assert write_summary(Plan(budget="quick")) == "Nothing of this matrix can run."


def test_a_matrix_that_the_change_does_not_fit_has_no_button() -> None:
    plan = a_plan(policy="max-performance", runtime="1.20.0")

    def find_buttons(matrix: str) -> set[Button | None]:
        groups = group_refusals(plan.refused, lambda point: Entry(point.id), matrix=matrix)
        return {group.button for group in groups}

    assert find_buttons("policy: [none]") != {None}
    for matrix in ("", "runtme: [1]"):
        assert find_buttons(matrix) == {None}
