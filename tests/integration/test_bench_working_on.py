"""`onnxfarm bench` with several sessions at once, and with cells that work on: by real runners, in one run."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from onnxfarm.main import app
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import MODELS, share_runtimes

MODEL = MODELS / "relu_op17_ir8.onnx"


def bench(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, words), "--home", str(home)])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, dict[str, Any]]:
    """One run of two cells, one session and two at once, three seconds of work on each."""
    home = tmp_path_factory.mktemp("home")
    share_runtimes(home)
    out = home / "out.json"
    # nothing is asserted of disturbed samples, which a busy machine would measure again and again
    with brief_windows():
        result = bench(home, MODEL, "--ort", "1.31.1", "--concurrency", "1,2", "--sustained", "0.05", "--json", out)
    assert result.exit_code == 0, result.output
    return result, json.loads(out.read_text())


@pytest.mark.slow
def test_sessions_at_once_are_an_axis_with_their_common_throughput(measured: tuple[Result, dict[str, Any]]) -> None:
    _, found = measured
    document = Document.model_validate(found)
    one, two = document.cells
    assert (one.concurrency, two.concurrency) == (1, 2)
    assert one.p50_ms is not None
    assert two.p50_ms is not None
    assert one.throughput == pytest.approx((one.batch or 1) * 1000 / one.p50_ms)
    # both sessions' inferences over the common window: never more than both could do alone
    most = 2 * (two.batch or 1) * 1000 / two.p50_ms
    assert two.throughput is not None
    assert 0.05 * most < two.throughput <= 1.05 * most
    assert (one.with_copies_p50_ms, two.with_copies_p50_ms) == (None, None), "the CPU has no memory of its own"
    (compared,) = document.comparisons
    assert (compared.axis, compared.interleaved) == ("concurrency", True)


@pytest.mark.slow
def test_cells_work_on_and_say_what_became_of_them(measured: tuple[Result, dict[str, Any]]) -> None:
    result, found = measured
    for cell in Document.model_validate(found).cells:
        assert cell.sustained is not None
        assert len(cell.sustained.points) == 6
        assert cell.sustained.text.endswith(".")
        assert f"{cell.id}, sustained: {cell.sustained.text}" in result.stdout
        assert cell.energy_mj is not None or cell.energy_text.startswith("not readable here: ")
    (before,) = Document.model_validate(found).blocks
    assert before.block == "b1"
    assert before.load_1m is not None
    assert before.busy_share is not None
    assert before.other_runners is not None


@pytest.mark.parametrize("minutes", ["0", "-1", "31", "nan", "inf"])
def test_minutes_that_are_none_are_refused_in_a_sentence(tmp_path: Path, minutes: str) -> None:
    result = bench(tmp_path, MODEL, "--sustained", minutes)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("onnxfarm: sustained is ")
    assert "write minutes from 0.05 to 30" in line
