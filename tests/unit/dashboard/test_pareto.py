"""The Pareto chart and what stands beside it: accuracy against latency against bytes."""

import json
from typing import Any

import pytest

from dashboard import markup
from dashboard.figures import accuracies, pareto
from dashboard.figures.figure import Figure
from dashboard.reading import cells
from farm.contract.document_cells import Accuracy, Cell, OperatorTime, Parity
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.wording.numbers import MIB
from tests.documents import NEW, make_cell
from tests.unit.dashboard.conftest import address


def cell(name: str, *, p50: float | None, right: float | None, size: int, precision: str = "fp32", **more: Any) -> Cell:
    known = {"runtime": NEW, "batch": None, "precision": precision, "recipe": precision.replace("fp32", "")}
    measured = {"p50_ms": p50, "p50_ci_ms": None if p50 is None else (0.9 * p50, 1.1 * p50), "model_bytes": size}
    accuracy = None if right is None else judged(right)
    return make_cell(name, **{**known, **measured, "digest": name * 32, "accuracy": accuracy, **more})


def judged(right: float, **more: Any) -> Accuracy:
    known: dict[str, Any] = {
        "metric": "top1", "recipe": "top1", "output": "y", "n": 540, "value": right, "ci_low": right - 0.01,
        "ci_high": min(1.0, right + 0.01), "text": "It is judged.",
    }  # fmt: skip
    return Accuracy(**{**known, **more})


PLAIN = cell("c1", p50=1.0, right=0.98, size=190_000)
SMALL = cell("c2", p50=1.2, right=0.98, size=50_000, precision="int8-qdq")
FAST = cell("c3", p50=0.5, right=0.90, size=90_000, precision="fp16")
BEATEN = cell("c4", p50=2.0, right=0.89, size=95_000, precision="int8-dynamic")
ALL = [PLAIN, SMALL, FAST, BEATEN]


def drawn(found: Figure) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(found.json)["data"]
    return data


def test_cells_that_nothing_beats_are_on_the_front_and_the_others_are_faded() -> None:
    figure = pareto.draw_cells(ALL, address)
    line, faded, front = drawn(figure)
    assert [point[0] for point in front["customdata"]] == [address(name) for name in ("c1", "c2", "c3")]
    assert [point[0] for point in faded["customdata"]] == [address("c4")]
    assert faded["marker"]["opacity"] < front["marker"]["opacity"]
    # of latency and accuracy alone, what is gained by waiting
    assert line["x"] == [0.5, 1.0]
    assert line["y"] == [0.90, 0.98]
    assert figure.title.startswith(
        "3 of 4 cells are on the Pareto front of time, accuracy and size; the fastest, fp16, takes 0.5"
    )
    assert "top-1 90.0 %" in figure.title


def test_a_point_has_both_intervals_and_an_area_for_its_bytes() -> None:
    _, _, front = drawn(pareto.draw_cells(ALL, address))
    assert front["error_y"]["array"] == pytest.approx([0.01, 0.01, 0.01])
    assert front["error_x"]["arrayminus"] == pytest.approx([0.1, 0.12, 0.05])
    sizes = front["marker"]["size"]
    assert sizes[0] == pareto.LARGEST
    assert (sizes[1] / sizes[0]) ** 2 == pytest.approx(50 / 190, rel=0.02)


def test_points_can_stand_for_peak_memory_and_say_so() -> None:
    sizes = {"c1": 200, "c2": 195, "c3": 50}
    measured = [plain.model_copy(update={"peak_memory_bytes": sizes.get(plain.id, 0) * MIB or None}) for plain in ALL]
    figure = pareto.draw_cells(measured, address, weight=accuracies.PEAK_MEMORY)
    _, faded, front = drawn(figure)
    # 5 MiB less is no less
    assert [point[0] for point in front["customdata"]] == [address("c1"), address("c3")]
    assert front["marker"]["size"] == [pareto.LARGEST, pareto.LARGEST / 2]
    assert faded["marker"]["size"][1] == pareto.SMALLEST, "not measured"
    assert "50 MiB" in front["customdata"][1][1]
    assert "A larger point: more peak memory." in figure.note
    assert "peak memory" in figure.summary
    assert [head.text for head in figure.table.heads][1] == "peak memory"
    assert [row[1].text for row in figure.table.rows] == ["50 MiB", "200 MiB", "195 MiB", "not measured"]


def test_the_table_has_every_number_and_says_who_is_on_the_front() -> None:
    table = pareto.draw_cells(ALL, address).table
    rows = {row[0].href: [entry.text for entry in row] for row in table.rows}
    assert rows[address("c2")][1:4] == ["50.0 kB", "1.2", "98.0 %"]
    assert [row[6] for row in rows.values()].count("on the front") == 3
    assert rows[address("c4")][6] == ""
    assert all(len(row) == len(table.heads) for row in table.rows)


def test_cells_without_latency_or_accuracy_and_twins_are_left_out() -> None:
    failed = judged(0.5, value=None, reason=Reason(code=ReasonCode.TIMEOUT, text="Too slow."))
    odd = [
        cell("c5", p50=None, right=0.9, size=1), cell("c6", p50=1.0, right=None, size=1),
        cell("c7", p50=1.0, right=0.5, size=1, accuracy=failed), cell("c8", p50=0.1, right=1.0, size=1, twin_of="c1"),
    ]  # fmt: skip
    assert pareto.draw_cells([*ALL, *odd], address).table.rows == pareto.draw_cells(ALL, address).table.rows


def test_without_labelled_data_the_chart_says_what_to_do() -> None:
    figure = pareto.draw_cells([cell("c1", p50=1.0, right=None, size=1)], address)
    assert figure.empty
    assert not figure.data


def test_smaller_errors_are_better() -> None:
    off = [
        one.model_copy(update={"accuracy": judged(value, metric="mse", recipe="mse", higher_is_better=False)})
        for one, value in ((PLAIN, 0.1), (FAST, 0.4), (BEATEN, 0.5))
    ]
    _, _, front = drawn(pareto.draw_cells(off, address))
    assert [point[0] for point in front["customdata"]] == [address("c1"), address("c3")]


def test_the_difference_to_fp32_is_told_with_its_interval() -> None:
    worse = judged(0.9, difference=-0.08, difference_low=-0.11, difference_high=-0.05, p=0.001, baseline="c1")
    found = FAST.model_copy(update={"accuracy": worse})
    entry = accuracies.difference_entry(found)
    minus = "\N{MINUS SIGN}"
    assert entry.text == f"{minus}8.00 points ({minus}11.00 to {minus}5.00)"
    assert entry.soft == "worse"
    heads = [head.text for head in cells.make_table([PLAIN, found], address).heads]
    assert heads.index("accuracy") == heads.index("Parity") + 1
    assert "accuracy" not in [
        head.text for head in cells.make_table([cell("c1", p50=1, right=None, size=1)], address).heads
    ]


@pytest.mark.parametrize(
    ("op_types", "words"),
    [
        (("QLinearConv", "QGemm"), "1 Conv and 1 MatMul ran in 8 bits."),
        (("Conv", "QLinearConv"), "1 of 2 Conv stayed FP32, 50 % of the time."),
    ],
)
def test_what_a_quantised_cell_ran_is_read_off_its_trace(op_types: tuple[str, ...], words: str) -> None:
    ran = [
        OperatorTime(node=f"n{at}", op_type=kind, provider="CPUExecutionProvider", time_us=5.0)
        for at, kind in enumerate(op_types)
    ]
    assert accuracies.describe_float_operators(SMALL.model_copy(update={"operators": ran})) == words
    assert accuracies.describe_float_operators(PLAIN.model_copy(update={"operators": ran})) == ""


def test_a_row_with_wrong_outputs_keeps_its_name_and_link() -> None:
    wrong = cell("c5", p50=0.4, right=0.97, size=54_000, precision="int8-qdq", parity=Parity(verdict="fail", text=""))
    table = accuracies.make_table([PLAIN, wrong], frozenset(), address)
    [row] = [row for row in markup.rows(table).split("<tr")[1:] if "wrong outputs" in row]
    assert f'href="{address("c5")}"' in row
    assert "int8-qdq" in row


LOST = {"difference": -0.97, "difference_low": -0.98, "difference_high": -0.96}
WRONG = cell("c5", p50=0.1, right=0.006, size=10, precision="int8-qoperator", accuracy=judged(0.006, **LOST))


def test_wrong_outputs_are_never_on_the_front_nor_the_fastest_and_are_marked() -> None:
    figure = pareto.draw_cells([*ALL, WRONG], address)
    _, faded, front = drawn(figure)
    assert address("c5") not in [point[0] for point in front["customdata"]]
    assert any("✕ wrong outputs" in point[1] for point in faded["customdata"])
    assert figure.title.startswith(
        "3 of 5 cells are on the Pareto front of time, accuracy and size; the fastest, fp16, takes 0.5"
    )
    (row,) = [row for row in figure.table.rows if row[0].href == address("c5")]
    assert (row[0].sign.mark, row[6].text) == ("✕", "")


def test_where_no_outputs_are_right_nothing_is_praised() -> None:
    alone, both = (
        pareto.draw_cells([WRONG], address),
        pareto.draw_cells([WRONG, cell("c6", p50=0.2, right=None, size=1)], address),
    )
    assert alone.title == both.title == "0.10 ms ± 0.01, top-1 0.6 %: wrong outputs"
    other = WRONG.model_copy(update={"id": "c6", "batch": 8})
    several = pareto.draw_cells([WRONG, other], address)
    assert several.title == "Wrong outputs in all 2 cells, top-1 0.6 % in the fastest"
    assert len(drawn(several)) == 2
