"""What the page of a cell says of its outputs against other engines and settings."""

from typing import Any

from dashboard.views.cell import make_comparison_table
from farm.contract.document_cells import Cell, EngineParity, Parity, ParityOutput
from tests.documents import NEW, make_cell


def cell(name: str, **changes: Any) -> Cell:
    return make_cell(name, **{"batch": None, "runtime": NEW, "block": "b1", "is_repeatable": True, **changes})


def lines(cells: list[Cell], name: str) -> dict[str, list[str]]:
    table = make_comparison_table(cells, next(one for one in cells if one.id == name), lambda cell_id: f"/{cell_id}/")
    return {row[0].text: [row[1].sign.word if row[1].sign else "", row[2].text, row[3].text] for row in table.rows}


def test_a_cell_that_was_not_checked_has_no_lines() -> None:
    assert lines([cell("c1", is_repeatable=None)], "c1") == {}


def test_each_own_setting_has_a_line_with_its_reason_where_it_was_not_looked_at() -> None:
    found = lines([cell("c1")], "c1")
    assert found["the same input again"][0] == "pass"
    assert found["its own runtime without optimisations"][0] == "not measured"
    assert found["a row of the batch alone"] == [
        "not measured", "", "needs a dynamic batch, and more than one row in it"
    ]  # fmt: skip
    assert found["the precision asked for, fp32"] == ["not reported", "", "The provider reports no precision."]


def test_what_differs_is_said_with_its_size() -> None:
    levels = Parity(verdict="fail", text="Output 'y' moved.", outputs=[ParityOutput(name="y", max_abs=0.25)])
    odd = cell("c1", is_repeatable=False, unoptimised=levels, batch_row_max_abs=0.5, executed_precision="bf16")
    found = lines([odd], "c1")
    assert found["its own runtime without optimisations"] == ["differs", "0.250", "Output 'y' moved."]
    assert found["the same input again"][0] == "differs"
    assert found["a row of the batch alone"][0] == "differs"
    assert found["the precision asked for, fp32"][0] == "differs"


def test_a_pair_of_engines_stands_on_both_pages_and_what_differs_comes_first() -> None:
    old = cell("c1", runtime="onnxruntime==1.29.0")
    same = EngineParity(cell="c1", verdict="pass", text="The output is c1's.")
    far = EngineParity(cell="c1", verdict="fail", text="Far.", outputs=[ParityOutput(name="y", max_abs=1.0)])
    cells = [old, cell("c2", engines=[same]), cell("c3", runtime="onnxruntime==1.30.0", engines=[far])]
    table = make_comparison_table(cells, old, lambda cell_id: f"/{cell_id}/")
    assert [(row[0].href, row[1].sign.word if row[1].sign else "") for row in table.rows[4:]] == [
        ("/c3/", "differs"), ("/c2/", "pass"),
    ]  # fmt: skip
    assert lines(cells, "c3")["1.29.0"] == ["differs", "1.00", "Far."]
