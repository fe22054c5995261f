"""Operators of compared cells in one row each, what moved marked, and their inferences on one axis."""

import json

import pytest

from dashboard.figures import lanes
from dashboard.figures.timelines import Matched
from dashboard.reading import judging
from dashboard.views import compared_operators as reading
from farm.contract.document_cells import Cell, OperatorTime
from farm.contract.document_comparisons import Comparison, OperatorChange
from farm.rules.tracing.timeline import Span, Timeline
from farm.rules.wording.numbers import MINUS

CPU = "CPUExecutionProvider"


def ran(node: str, time_us: float, *covers: str, op_type: str = "MatMul") -> OperatorTime:
    return OperatorTime(node=node, covers=list(covers), op_type=op_type, provider=CPU, time_us=time_us)


def chosen(by_id: dict[str, Cell], *sides: list[OperatorTime], **changes: object) -> list[judging.ChosenCell]:
    """A base and others that executed these operators; `changes`: what the others are else."""
    cell = by_id["b1-a0"]
    return [
        judging.ChosenCell(f"{at}:c", at, cell.model_copy(update={"operators": rows, **(changes if at else {})}), "")
        for at, rows in enumerate(sides)
    ]


def test_what_is_fused_in_one_cell_stands_beside_its_parts_in_the_other(by_id: dict[str, Cell]) -> None:
    pair = chosen(by_id, [ran("mul", 30), ran("add", 20)], [ran("mul", 40, "add", op_type="FusedMatMul")])
    [group] = reading.group_operators(pair, [None])
    assert (group.node, group.covers) == ("mul", ("add",))
    assert [one.time_us for one in group.sides] == [50, 40]
    assert reading.make_table(pair, [group]).rows[0][1].text == "MatMul | FusedMatMul"


def test_an_operator_that_one_cell_does_not_execute_says_so_and_counts_in_full(by_id: dict[str, Cell]) -> None:
    pair = chosen(by_id, [ran("a", 90)], [ran("a", 90), ran("extra", 25)])
    top = reading.group_operators(pair, [None])[0]
    assert (top.node, top.change_us(1)) == ("extra", 25)
    assert reading.make_table(pair, [top]).rows[0][2].text == "not executed"


@pytest.mark.parametrize(
    ("old", "new", "changes", "word"),
    [
        (100.0, 150.0, {}, "longer"),
        (150.0, 100.0, {}, "shorter"),
        # under a tenth of its own, and under a hundredth of the whole
        (100.0, 108.0, {}, None),
        (1.0, 2.0, {}, None),
        (100.0, 150.0, {"node": "pi"}, "differs"),
        (100.0, 150.0, {"model": "another"}, "differs"),
        (100.0, 150.0, {"batch": 8}, "differs"),
    ],
)
def test_what_moved_is_marked_and_called_longer_only_on_one_machine_with_one_model(
    by_id: dict[str, Cell], old: float, new: float, changes: dict[str, object], word: str | None
) -> None:
    pair = chosen(by_id, [ran("a", old), ran("rest", 500)], [ran("a", new), ran("rest", 500)], **changes)
    group = next(one for one in reading.group_operators(pair, [None]) if one.node == "a")
    assert (group.moved[0].word if group.moved[0] else None) == word


def test_an_interval_of_the_block_that_reaches_no_change_says_that_nothing_moved(by_id: dict[str, Cell]) -> None:
    pair = chosen(by_id, [ran("a", 100)], [ran("a", 150)])
    change = OperatorChange(
        node="a", op_type="MatMul", baseline_us=100, candidate_us=150, change_low_us=-5, change_high_us=90
    )
    known = Comparison.model_construct(operators=[change])  # type: ignore[call-arg]
    [group] = reading.group_operators(pair, [known])
    assert not group.has_moved
    assert reading.write_headline(pair, [group]) == "None of 1 operator moved"
    assert reading.select_groups([group], every=False, wanted="") == []
    assert reading.select_groups([group], every=True, wanted="matmul a") == [group]


def test_two_cells_of_one_block_are_told_by_the_pairs_of_its_traces(by_id: dict[str, Cell]) -> None:
    """+50 µs of two single traces stood here, and −50 µs of all of them on the page of their comparison."""
    pair = chosen(by_id, [ran("a", 100)], [ran("a", 150)])
    change = OperatorChange(
        node="a", op_type="MatMul", baseline_us=150, candidate_us=100, change_us=-49, change_low_us=-60,
        change_high_us=-40,
    )  # fmt: skip

    def told(known: OperatorChange) -> tuple[list[str], str]:
        [group] = reading.group_operators(pair, [Comparison.model_construct(operators=[known])])  # type: ignore[call-arg]
        row = reading.make_table(pair, [group]).rows[0]
        assert group.moved[0] == reading.SHORTER
        return [entry.text for entry in row[2:5]], json.loads(reading.write_graph_notes([group]))["a"]["text"]

    assert told(change) == (["150", "100", f"{MINUS}49.0"], f"150 → 100 µs ({MINUS}49.0)")
    apart = change.model_copy(update={"candidate_us": 140.0})
    assert told(apart) == (["", "", f"{MINUS}49.0"], f"{MINUS}49.0 µs")
    other = change.model_copy(update={"covers": ["b"]})
    [group] = reading.group_operators(pair, [Comparison.model_construct(operators=[other])])  # type: ignore[call-arg]
    assert (group.pairs, group.has_moved, group.change_us(1)) == (None, False, 50)


def test_a_cell_without_a_trace_moves_nothing(by_id: dict[str, Cell]) -> None:
    three = chosen(by_id, [ran("a", 100)], [ran("a", 200)], [])
    [group] = reading.group_operators(three, [None, None])
    assert [sign.word if sign else "" for sign in group.moved] == ["longer", ""]
    assert "+100 µs" in reading.write_headline(three, [group])


def test_notes_for_the_graph_have_both_times_and_the_direction(by_id: dict[str, Cell]) -> None:
    pair = chosen(by_id, [ran("a", 100, "<b>")], [ran("a", 150, "<b>")])
    text = reading.write_graph_notes(reading.group_operators(pair, [None]))
    assert "<" not in text
    written = json.loads(text)
    assert (written["a"]["text"], written["a"]["step"]) == ("100 → 150 µs (+50.0)", "longer")
    assert written["<b>"]["text"] == "with a"


def trace(*times_us: float) -> Timeline:
    spans = tuple(Span(f"n{at}", "MatMul", CPU, 10.0 * at, us, us, 0) for at, us in enumerate(times_us))
    return Timeline(runs=5, number=2, duration_us=sum(times_us) + 1, spans=spans)


def test_lanes_share_one_axis_and_what_is_fused_or_moved_is_together_painted_and_joined() -> None:
    traced = [lanes.Traced("old", trace(10, 20)), lanes.Traced("new", trace(10, 60, 5))]
    # n1 of the old cell is what the new one runs as n1 and n2
    matched = Matched("n1", [reading.LONGER])
    figure = lanes.draw_lanes(traced, {"n1": matched, "n2": matched, "n0": Matched("n0", [None])})
    drawn = json.loads(figure.json)
    assert figure.title.replace("\N{NO-BREAK SPACE}", " ") == "One traced inference: 31 µs in old and 76 µs in new"
    assert drawn["layout"]["yaxis"]["ticktext"] == ["old", "new"]
    assert drawn["layout"]["xaxis"]["range"] == [0, 76]
    painted = {bars["name"]: (bars["marker"]["color"], bars["x"]) for bars in drawn["data"]}
    assert painted == {"longer": ("@slower", [60.0, 20.0]), "not moved": ("@series-other", [10.0, 10.0])}
    assert [(link["x0"], link["x1"]) for link in drawn["layout"]["shapes"]] == [(10, 10), (30, 70)]
    assert 'd="M' in figure.picture


def test_a_lane_knows_nodes_by_the_beginning_of_their_names_and_a_third_cell_joins_nothing() -> None:
    spans = (Span("n1_nchwc", "Conv", CPU, 0.0, 5.0, 5.0, 0), Span("x", "Conv", CPU, 5.0, 5.0, 5.0, 0))
    named = Timeline(runs=5, number=2, duration_us=10, spans=spans)
    traced = [lanes.Traced(name, named) for name in ("old", "new", "third")]
    figure = lanes.draw_lanes(traced, {"n1": Matched("n1", [None, reading.ELSEWHERE])})
    painted = {bars["name"]: bars["y"] for bars in json.loads(figure.json)["data"]}
    assert painted == {"differs": [0, 2], "not moved": [0, 1, 1, 2]}
    assert figure.layout["shapes"] == []


def test_a_trace_that_is_not_there_is_named_beside_those_that_are() -> None:
    gone = lanes.Traced("gone", "Nothing is stored.")
    figure = lanes.draw_lanes([lanes.Traced("old", trace(10)), gone], {})
    assert figure.summary.endswith("gone: Nothing is stored.")
    assert lanes.draw_lanes([gone], {}).empty == "Nothing is stored."
