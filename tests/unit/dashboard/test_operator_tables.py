"""Operators that a cell executed, as tables: their shares, what is no operator, their memory."""

import re

import pytest

from dashboard.figures.operators import VERDICTS
from dashboard.reading import operators
from dashboard.views import graph
from farm.contract.document_cells import Cell, CellMetric, PromptTime
from farm.contract.document_comparisons import OperatorChange


def test_time_that_no_operator_has_is_a_row_and_part_of_what_shares_are_of(by_id: dict[str, Cell]) -> None:
    cell = by_id["b1-a0"]
    spent = sum(one.time_us for one in cell.operators)
    rows = operators.operator_table(cell.model_copy(update={"unaccounted_us": spent})).rows
    assert rows[-1][0].text == "in no operator"
    assert rows[-1][3].value == spent
    assert abs((rows[-1][4].value or 0) - 0.5) < 0.001
    assert operators.operator_table(cell).rows[-1][0].text != "in no operator"
    held_up = operators.operator_table(cell.model_copy(update={"unaccounted_us": 1001 * (cell.p50_ms or 0.0)}))
    assert held_up.rows[-1][0].text != "in no operator"
    assert sum(row[4].value or 0.0 for row in held_up.rows) == pytest.approx(1)


def test_operators_over_a_prompt_and_the_rest_add_up(by_id: dict[str, Cell]) -> None:
    """Shares of a prompt were of a whole of which most had no row."""
    listed = by_id["b1-a0"].operators[:3]
    spent = sum(one.time_us for one in listed)
    prompt = PromptTime(tokens=16, traced_us=10 * spent, unaccounted_us=8 * spent, operators=listed)
    table = operators.prompt_table(by_id["b1-a0"].model_copy(update={"prompt": prompt}))
    assert [row[0].text for row in table.rows[-2:]] == ["in no operator", "faster operators"]
    assert sum(row[4].value for row in table.rows) == pytest.approx(1)
    assert operators.prompt_table(by_id["b1-a0"]) is None


def test_choosing_a_token_is_a_row_beside_the_operators_of_a_token(by_id: dict[str, Cell]) -> None:
    cell = by_id["b1-a0"]
    spent = sum(one.time_us for one in cell.operators)
    told = [CellMetric(name=name, value=spent / 1000) for name in ("tpot_ms", "outside_ms")]
    row = operators.operator_table(cell.model_copy(update={"metrics": told})).rows[-1]
    assert (row[0].text, row[3].value, row[5].text) == (
        "outside the graph",
        spent,
        "choosing a token, as launches timed it",
    )
    assert abs((row[4].value or 0) - 0.5) < 0.001


@pytest.mark.parametrize(("beside", "graph_us"), [({}, 400.0), ({"outside_cpu_ms": 0.1}, 300.0)])
def test_where_nothing_was_traced_the_graph_stands_as_a_whole_beside_choosing(
    by_id: dict[str, Cell], beside: dict[str, float], graph_us: float
) -> None:
    figures = {"tpot_ms": 0.4, "outside_ms": 0.1, **beside}
    told = [CellMetric(name=name, value=value) for name, value in figures.items()]
    table = operators.operator_table(by_id["b1-a0"].model_copy(update={"metrics": told, "operators": []}))
    assert table.caption == "Where the time of a token goes"
    assert [(row[0].text, row[3].value) for row in table.rows] == [
        ("in the graph", pytest.approx(graph_us)),
        ("outside the graph", pytest.approx(100.0)),
    ]
    assert sum(row[4].value or 0 for row in table.rows) == pytest.approx(1)


def test_the_graphs_headline_counts_the_first_rows_of_its_table_and_adds_up_their_shares(
    by_id: dict[str, Cell],
) -> None:
    cell = by_id["b1-a0"]
    cell = cell.model_copy(update={"unaccounted_us": sum(operator.time_us for operator in cell.operators) / 4})
    found = re.fullmatch(r"(\d+) % of an inference is in (\d+) of (\d+) operators", graph.write_headline(cell))
    assert found is not None
    share, few, every = map(int, found.groups())
    rows = graph.make_table(cell).rows
    assert len(rows) == every
    assert 100 * sum(row[2].value for row in rows[:few]) == pytest.approx(share, abs=0.5)


def test_operators_are_sorted_by_time_and_add_up(by_id: dict[str, Cell]) -> None:
    table = operators.operator_table(by_id["b1-a0"])
    times = [row[3].value for row in table.rows]
    assert times == sorted(times, key=lambda time: -float(time or 0))
    assert sum(row[4].value or 0 for row in table.rows) == pytest.approx(1)


def test_memory_is_a_column_of_operators_where_the_profile_tells_it(by_id: dict[str, Cell]) -> None:
    cell = by_id["b1-a0"]
    assert "memory" not in [head.text for head in operators.operator_table(cell).heads]
    assert operators.describe_memory(cell) == operators.MEMORY_ABSENT
    first, *others = cell.operators
    told = [first.model_copy(update={"memory_bytes": 3 * 1024 * 1024}), *others]
    traced = cell.model_copy(update={"operators": told, "unaccounted_us": 1.0})
    table = operators.operator_table(traced)
    place = [head.text for head in table.heads].index("memory")
    assert [row[place].text for row in table.rows if row[0].text == first.node] == ["3.0 MiB"]
    assert table.rows[-1][place].text == ""
    assert {row[place].text for row in table.rows[:-1]} == {"3.0 MiB", "not told"}
    assert {len(row) for row in table.rows} == {len(table.heads)}
    assert operators.describe_memory(traced).startswith("Memory is what one call")
    assert operators.describe_memory(cell.model_copy(update={"operators": []})) == ""


def test_rounds_of_an_operator_are_whole() -> None:
    """A table had 8.00 rounds."""
    change = OperatorChange(
        node="conv", op_type="Conv", provider="CPU", baseline_us=1.0, candidate_us=2.0, moved_us=1.0, rounds=8
    )
    (rounds,) = (column for column in VERDICTS if column.text == "rounds")
    shown = rounds.entry(change), rounds.entry(change.model_copy(update={"rounds": None}))
    assert [entry.text for entry in shown] == ["8", ""]
