"""Tables of a terminal: what a cell is keeps its room, and a column of both clocks says which figure is of which."""

import io

from rich.console import Console

from farm.contract.document_cells import Cell
from onnxfarm.screen import show
from tests.documents import make_cell, make_document


def screen(*cells: Cell, width: int) -> str:
    text = io.StringIO()
    show(make_document(*cells), console=Console(file=text, width=width, color_system=None))
    return text.getvalue()


def cell(name: str, **changes: object) -> Cell:
    known = {"p50_ms": 0.228, "p50_ci_ms": (0.226, 0.230), "samples_ms": [0.228] * 8, "peak_memory_bytes": 93 * 2**20}
    return make_cell(name, **{**known, **changes})


def test_what_was_measured_stays_whole_beside_wrong_outputs_and_accuracy_at_80_columns() -> None:
    """The column was three letters wide: `mea`, `sur`, `ed`."""
    wrong = {"parity": {"verdict": "fail", "atol": 1e-6, "outputs": [{"name": "y", "max_abs": 3e-4, "violations": 4}]}}
    judged = {"metric": "top1", "recipe": "images", "ci_low": 0.966, "ci_high": 0.99}
    sides = [("1.29.0", "fp32", 0.981), ("1.31.1", "int8-dynamic", 0.972)]
    cells = [
        cell(
            f"c{n}",
            runtime=f"onnxruntime=={release}",
            precision=precision,
            accuracy={**judged, "value": value},
            **wrong,
        )
        for n, (release, precision, value) in enumerate(sides)
    ]
    text = screen(*cells, width=80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("1.29.0, fp32", "1.31.1, int8-dynamic", "fail 0.000300", "✕ wrong outputs", "98.1 % (96.6–99.0 %)"):
        assert part in text, part


def test_a_single_axis_heads_its_column_at_each_width() -> None:
    for width in (80, 160):
        text = screen(cell("c1"), cell("c2", runtime="onnxruntime==1.31.1"), width=width)
        assert "cell  runtime" in text


def test_a_column_of_both_clocks_says_which_figure_is_processor_time() -> None:
    busy = {"cpu_p50_ms": 0.1, "cpu_samples_ms": [0.1] * 8, "disturbed_samples": 8}
    for width in (80, 160):
        text = screen(cell("c1", **busy), cell("c2", threads=2), width=width)
        assert "p50 or CPU" in text
        assert "0.100 ms CPU" in text
        assert "0.002 CPU" not in text
    same = screen(*(cell(name, **busy, threads=threads) for name, threads in (("c1", 1), ("c2", 2))), width=160)
    assert "CPU time" in same
    assert "ms CPU" not in same
