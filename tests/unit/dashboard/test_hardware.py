"""What the page of a model across hardware says, from made-up cells: the question, the table, the chart."""

import json
from typing import Any

import pytest

from dashboard.figures import pareto
from dashboard.reading import file_rows
from dashboard.views import hardware as reading
from farm.contract.document_cells import Accuracy, Cell, Parity
from farm.rules.presenting.hardware import MeasuredSetting
from farm.rules.presenting.tables import Table
from tests.unit.rules.test_hardware import AT, CUDA, FAIL, OPENVINO, cell, judged, on


def address(one: MeasuredSetting) -> str:
    return f"/runs/{one.run}/cells/{one.cell.id}/"


def panel(*measured: MeasuredSetting, **given: str) -> reading.Panel:
    return reading.make_panel(measured, reading.read_question(given), address)


def right(value: float, **more: Any) -> Accuracy:
    return judged(value, ci_low=value - 0.01, ci_high=value + 0.01, recipe="top1", **more)


def column(table: Table, name: str) -> list[str]:
    place = [head.text for head in table.heads].index(name)
    return [row[place].sign.word if row[place].sign else row[place].text for row in table.rows]


INT8 = cell("c2", 1.0, precision="int8-dynamic", recipe="int8-dynamic", accuracy=right(0.895, difference=-0.005))
MEASURED = [
    on("a", cell(accuracy=right(0.9), energy_mj=12.0, peak_memory_bytes=95 << 20)),
    on("a", INT8),
    on("a", cell("c3", 0.5, provider=OPENVINO, parity=FAIL)),
    on("b", cell("c4", 30.0), machine="Slow CPU"),
    on("b", cell("c5", 0.7, provider=CUDA), machine="Example GPU"),
]


def test_every_target_is_a_row_with_its_best_setting_and_what_was_left_out() -> None:
    found = panel(*MEASURED)
    assert column(found.table, "Target") == ["b (cuda)", "a (cpu)", "b (cpu)", "a (openvino)"]
    assert column(found.table, "Hardware") == ["Example GPU", "Example CPU", "Slow CPU", "Example CPU"]
    assert column(found.table, "Best setting")[1] == "1.31.1, CPU, int8-dynamic, batch 1, 1 thread"
    assert column(found.table, "Best setting")[3] == "none: every setting was left out"
    assert found.table.rows[3][-1].soft == "1 left out"
    assert found.left_out == "5 settings measured. Left out: 1 with wrong outputs."
    assert "Within" not in " ".join(head.text for head in found.table.heads)
    assert found.grid is None


def test_the_question_filters_the_table_and_its_sentence_has_the_same_number() -> None:
    found = panel(*MEASURED, budget="20", loss="1")
    assert found.sentence.startswith(
        "Within 20 ms and 1 % loss: 2 of 4 targets of version 1. Lowest p50: 0.70 ms ± 0.04"
    )
    assert column(found.table, "Within 20 ms and 1 % loss") == ["within", "within", ""]
    assert column(found.table, "p50, ms")[:2] == ["0.70", "1.00"]
    assert found.hidden == 1
    every = panel(*MEASURED, budget="20", loss="1", every="yes")
    assert column(every.table, "Within 20 ms and 1 % loss")[2] == "beyond"
    assert every.hidden == 0


def test_losses_are_told_by_labelled_data_or_by_parity_or_not_at_all() -> None:
    minus = "\N{MINUS SIGN}"
    fp16 = cell("c6", 0.1, precision="fp16")
    told = [reading.loss_entry(on("a", one)) for one in (INT8, cell(), fp16)]
    assert [(one.text, one.soft) for one in told] == [
        (f"{minus}0.50 points ({minus}0.90 to {minus}0.10)", ""), ("none", "by parity"), ("not measured", ""),
    ]  # fmt: skip


def test_memory_energy_and_the_day_stand_beside_what_was_not_measured() -> None:
    found = panel(MEASURED[0]).table
    assert (column(found, "memory"), column(found, "energy, mJ")) == (["95 MiB"], ["12.0"])
    assert AT in [entry.at for entry in found.rows[0]]
    bare = panel(MeasuredSetting(1, 1, "a", "", None, cell())).table
    assert column(bare, "Measured") == ["not known"]
    # what no row has is no column
    assert not {"memory", "energy, mJ", "accuracy"} & {head.text for head in bare.heads}
    assert column(bare, "Hardware") == ["not known"]


def test_versions_stand_on_targets_with_gaps_where_nothing_was_measured() -> None:
    measured = [*MEASURED, on("a", cell("c7", 4.0), version=2)]
    found = panel(*measured, version="all")
    assert column(found.table, "version") == ["2", "1", "1", "1", "1"]
    assert found.grid is not None
    assert column(found.grid, "a (cpu)") == ["4.0", "1.00"]
    assert column(found.grid, "b (cpu)") == ["not measured", "30"]
    assert column(found.grid, "a (openvino)") == ["not measured", "left out"]
    assert [one.version for one in panel(*measured, version="1").shown] == [1, 1, 1, 1]
    assert [one.version for one in panel(*measured).shown] == [2]


def test_a_tag_over_several_nodes_says_which_has_the_best() -> None:
    found = panel(*MEASURED, by="tag").table
    assert column(found, "Target") == ["cuda", "cpu (2 nodes)", "openvino"] or found.rows[1][0].soft == "best on a"


@pytest.mark.parametrize("typed", ["some", "-1", "101", "nan", "inf", "<b>", "1e999", "9" * 300])
def test_what_is_no_loss_is_said_beside_the_field(typed: str) -> None:
    asked = reading.read_question({"loss": typed})
    assert asked.limits.max_loss is None
    assert "not a percentage" in asked.errors["loss"] or "between 0 and 100 %" in asked.errors["loss"]
    assert asked.typed["loss"] == typed[:40]


@pytest.mark.parametrize("typed", ["", " ", "2", "0,5", "1 %"])
def test_a_loss_is_read_as_people_write_it(typed: str) -> None:
    asked = reading.read_question({"loss": typed})
    assert asked.errors == {}
    assert asked.limits.max_loss == {"": None, " ": None, "2": 0.02, "0,5": 0.005, "1 %": 0.01}[typed]


@pytest.mark.parametrize("version", ["", "-1", "first", "٣", "9" * 40])
def test_a_version_that_is_none_is_the_newest(version: str) -> None:
    assert reading.read_question({"version": version, "goal": "money", "by": "me"}).version == reading.NEWEST
    assert panel(*MEASURED, version=version).shown


def test_the_chart_draws_judged_settings_by_target_and_its_front_over_all_of_them() -> None:
    other = [on("b", cell("c8", 0.9, accuracy=right(0.7))), on("b", cell("c9", 9.0, batch=8, accuracy=right(0.9)))]
    figure = panel(*MEASURED, *other).figure
    line, *targets = json.loads(figure.json)["data"]
    assert (line["x"], line["y"]) == ([0.9, 1.0, 2.0], [0.7, 0.895, 0.9])
    assert [one["name"] for one in targets] == ["a (cpu)", "b (cpu)"]
    assert len({one["marker"]["color"] for one in targets}) == 2
    assert targets[0]["error_y"]["array"] == pytest.approx([0.01, 0.01])
    assert figure.title.startswith(
        "3 of 3 settings on 2 targets are on the Pareto front; the fastest of them, on b (cpu)"
    )
    assert column(figure.table, "Pareto front") == ["on the front"] * 3
    assert [row[1].href for row in figure.table.rows] == [
        "/runs/1/cells/c8/", "/runs/1/cells/c2/", "/runs/1/cells/c1/"
    ]  # fmt: skip


def test_wrong_outputs_are_not_drawn_and_smaller_errors_are_better() -> None:
    wrong = on("a", cell("c8", 0.01, accuracy=right(0.99), parity=FAIL))
    errors = [
        on("a", cell("c1", accuracy=judged(0.1, metric="mse", higher_is_better=False))),
        on("b", cell("c2", 3.0, accuracy=judged(0.4, metric="mse", higher_is_better=False))),
    ]
    figure = pareto.draw_hardware([wrong, *errors], [], address)
    assert column(figure.table, "Pareto front") == ["on the front", ""]
    assert "mean squared error" in figure.title


def test_without_labelled_data_the_chart_says_what_to_do() -> None:
    found = panel(on("a", cell()), on("b", cell("c2", 3.0)))
    assert "an .npz of inputs and labels" in found.hint
    # and what was measured is drawn all the same: the page had an empty chart
    (points,) = json.loads(found.figure.json)["data"]
    assert (points["x"], points["y"]) == ([2.0, 3.0], ["a (cpu)", "b (cpu)"])
    assert found.figure.title == "The best setting on 2 targets"


def test_a_row_of_the_file_has_plain_values_and_gaps_for_what_is_not_known() -> None:
    best, none = (file_rows.target_row(one) for one in (panel(MEASURED[1]).shown[0], panel(MEASURED[2]).shown[0]))
    assert (best["nodes"], best["tag"], best["p50_ms"], best["keeps"]) == ("a", "cpu", 1.0, "kept")
    assert (best["loss_percent"], best["loss_worst_percent"]) == (pytest.approx(0.5), pytest.approx(0.9))
    assert (none["p50_ms"], none["keeps"], none["left_out"]) == (None, "", 1)
    assert list(best) == list(none)


def test_a_cell_without_parity_may_be_best_and_says_that_it_was_not_compared() -> None:
    assert column(panel(on("a", cell(parity=Parity()))).table, "Outputs") == ["not measured"]
    assert isinstance(INT8, Cell)


def test_a_target_has_the_colour_of_its_provider_where_targets_differ_in_it() -> None:
    fast = cell("c3", 0.5, provider=OPENVINO, accuracy=right(0.9))
    every = [*MEASURED[:2], on("a", fast), on("b", cell("c6", 3.0, accuracy=right(0.9)))]

    def colours(*measured: MeasuredSetting) -> dict[str, str]:
        points = [trace for trace in json.loads(panel(*measured).figure.json)["data"] if "marker" in trace]
        return {trace["name"]: trace["marker"]["color"] for trace in points}

    grey = "@series-other"
    assert colours(*every) == {"a (cpu)": grey, "a (openvino)": "@series-1", "b (cpu)": grey}
    assert colours(every[0], every[3]) == {"a (cpu)": "@series-1", "b (cpu)": "@series-2"}
