"""The main job, end to end with real processes: a model and a matrix in, measured and explained cells out."""

import gzip
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from farm.contract.document import Document
from farm.rules.comparing.look_levels import LOOKS
from farm.rules.comparing.repeats import MIN_ROUNDS
from tests.acceptance.conftest import LiveFarm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

# two threads: samples of one are dropped, and their pairs with them, while other tests keep the cores busy
TWO_RUNTIMES = {
    "budget": "quick",
    "matrix": {
        "runtime": ["onnxruntime==1.29.0", "onnxruntime==1.31.1"],
        "provider": ["cpu"],
        "batch": [1],
        "precision": ["fp32"],
        "threads": [2],
    },
}


@pytest.fixture(scope="module")
def document(farm: LiveFarm, request: pytest.FixtureRequest) -> dict[str, Any]:
    models: Path = Path(__file__).parents[1] / "models"
    return farm.submit(models / "cnn_dyn.onnx", TWO_RUNTIMES)


def test_a_model_and_a_matrix_become_measured_cells(document: dict[str, Any]) -> None:
    known = Document.model_validate(document)
    # and the A/A twin that the farm adds to know its own noise
    assert [(cell.status.value, cell.twin_of) for cell in known.cells] == [
        ("done", None),
        ("done", None),
        ("done", "c1"),
    ]
    for cell in known.cells:
        assert cell.requested_providers[:1] == cell.active_providers[:1] == ["CPUExecutionProvider"]
        assert len(cell.samples_ms) >= MIN_ROUNDS  # a machine too slow for eight ends when the promised time does
        assert cell.p50_ms is not None
        assert cell.session_ms is not None
        assert cell.peak_memory_bytes is not None
        assert cell.parity.verdict == "pass"
        assert cell.providers[0].time_share == pytest.approx(1.0)
        assert cell.repeat_command.startswith("onnxfarm bench")


def test_the_two_runtimes_are_compared_over_interleaved_rounds(document: dict[str, Any]) -> None:
    read = Document.model_validate(document)
    [comparison] = [one for one in read.comparisons if one.axis != "twin"]
    # a machine that others use may lose pairs, and a slow one rounds: what is left decides, or it says why it does not
    assert comparison.rounds <= min(len(cell.samples_ms) for cell in read.cells)
    assert comparison.rounds >= LOOKS[0] or comparison.reason
    assert comparison.ratio is not None
    assert comparison.ci_low is not None
    assert comparison.ci_low <= comparison.ratio <= (comparison.ci_high or 0)
    assert comparison.operators


def test_a_raw_trace_is_stored_as_onnx_runtime_wrote_it(farm: LiveFarm, document: dict[str, Any]) -> None:
    traces = sorted((farm.plan.home / "store").rglob("*"))
    packed = [path for path in traces if path.is_file() and path.read_bytes()[:2] == b"\x1f\x8b"]
    assert len(packed) >= 2
    events = json.loads(gzip.decompress(packed[0].read_bytes()))
    assert any(event.get("cat") == "Node" for event in events)


def test_the_same_run_reads_the_same_by_the_command(farm: LiveFarm, document: dict[str, Any]) -> None:
    written = json.loads(farm.command("results", str(document["run"]), "--json").stdout)
    assert [cell["p50_ms"] for cell in written["cells"]] == [cell["p50_ms"] for cell in document["cells"]]
    assert written["schema"] == "onnxfarm.bench/1"


def test_operators_say_the_memory_that_they_asked_for_in_the_document_and_on_the_cells_page(
    farm: LiveFarm, document: dict[str, Any]
) -> None:
    known = Document.model_validate(document)
    for cell in known.cells:
        assert all(operator.memory_bytes is not None for operator in cell.operators if operator.op_type)
        assert sum(operator.memory_bytes or 0 for operator in cell.operators) > 0
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as browser:
        farm.sign_in(browser)
        page = browser.get(f"/runs/{known.run}/cells/{known.cells[0].id}/").text
    assert ">memory</th>" in page
    assert "still held when it ended, the most of any profiled inference" in page
