"""`onnxfarm bench` of models that draw random numbers: judged where a seed makes every process draw the same."""

from pathlib import Path

import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

from farm.contract.document import Document
from onnxfarm.main import app
from tests.unit.workshop import making

pytestmark = [
    pytest.mark.usefixtures("shortened", "two_rounds"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def drawing(**seed: float) -> onnx.ModelProto:
    """Noise on what comes in, as a synthesiser of speech adds it."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], **seed),
        helper.make_node("Add", ["x", "noise"], ["y"]),
    ]
    return making.model(nodes, [making.port("x", ["batch", 64])], [making.port("y", ["batch", 64])])


@pytest.mark.parametrize(("seed", "verdict"), [({}, "not_measured"), ({"seed": 7.0}, "pass")])
def test_drawn_outputs_are_judged_where_every_process_draws_the_same(
    seed: dict[str, float], verdict: str, home: Path, tmp_path: Path
) -> None:
    model, out = making.save(drawing(**seed), tmp_path / "voice") / "model.onnx", tmp_path / "out.json"
    words = ["bench", str(model), "--ort", "1.29.0,1.31.1", "--threads", "2", "--json", str(out), "--home", str(home)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    cells = Document.model_validate_json(out.read_bytes()).cells
    assert [cell.parity.verdict for cell in cells] == [verdict] * 2
    assert [beside.verdict for beside in cells[1].engines] == [verdict]
    assert cells[1].is_repeatable is False
    assert done.output.count("draws random numbers (RandomNormalLike)") == (verdict == "not_measured")
