"""The digit classifier in every precision: what is lost, gained and saved, on its pages, from real runs."""

import json
import re
import time
from collections.abc import Iterator

import httpx2
import pytest

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.presenting.times import Times
from farm.workshop.samples import builders
from tests.acceptance.conftest import LiveFarm
from tests.conftest import PROJECT

# it takes about a minute of measuring; what is asserted does not depend on how fast the machine is
pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

MATRIX = PROJECT / "docs" / "examples" / "digits.yaml"
SIGNED = "activation=int8"
FOUND: dict[str, float] = {}


@pytest.fixture(scope="module")
def document(farm: LiveFarm, tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder = tmp_path_factory.mktemp("digits")
    paths = {path.name: str(path) for path in builders.write_all(folder)}
    began = time.monotonic()
    farm.command(
        "submit", paths["digits.onnx"], "--evaluation", paths["digits.evaluation.npz"],
        "--calibration", paths["digits.calibration.npz"], "--matrix", str(MATRIX), "--wait",
        "--json", str(folder / "run.json"),
    )  # fmt: skip
    FOUND["wall_s"] = time.monotonic() - began
    print(f"digits: six variants measured and judged in {FOUND['wall_s']:.0f} s")
    return Document.model_validate(json.loads((folder / "run.json").read_text()))


@pytest.fixture(scope="module")
def browser(farm: LiveFarm) -> Iterator[httpx2.Client]:
    """Somebody who has signed in."""
    with httpx2.Client(base_url=farm.url, follow_redirects=True, timeout=60) as client:
        farm.sign_in(client)
        yield client


def variants(document: Document) -> list[Cell]:
    return [cell for cell in document.cells if cell.twin_of is None]


def test_every_variant_is_measured_and_judged_on_the_labelled_data(document: Document) -> None:
    cells = variants(document)
    assert [cell.precision for cell in cells] == ["fp32", "fp16", "int8-dynamic", "int8-qdq", "int8-qdq", "int8-qdq"]
    for cell in cells:
        assert (cell.status, cell.reason) == ("done", None)
        assert cell.p50_ms is not None
        found = cell.accuracy
        assert (found.metric, found.n, found.reason) == ("top1", 540, None)
        assert found.value is not None
        assert found.ci_low is not None
        assert found.ci_high is not None
        assert 0.9 < found.ci_low < found.value <= found.ci_high
    plain = cells[0]
    assert plain.model_bytes is not None
    assert all(cell.model_bytes and cell.model_bytes < 0.6 * plain.model_bytes for cell in cells[1:])
    assert [cell.accuracy.baseline for cell in cells if cell.accuracy] == [None, *[plain.id] * 5]


def test_the_models_page_shows_size_latency_accuracy_parity_and_the_pareto_chart(
    farm: LiveFarm, browser: httpx2.Client, document: Document
) -> None:
    model = next(one for one in farm.api("GET", "/models?search=digits").json() if one["name"] == "digits")
    page = browser.get(f"/models/{model['id']}/").text
    assert 'id="chart-pareto"' in page
    assert "540 samples of 10 classes, judged by top1 of the output y." in page
    # the table that belongs to the chart; others of the page name cells too
    [table] = re.findall(r"<table.*?</table>", page[page.index('id="chart-pareto"') :], re.DOTALL)[:1]
    rows = [row for row in re.findall(r"<tr\b.*?</tr>", table, re.DOTALL) if f"/runs/{document.run}/cells/" in row]
    assert len(rows) == len(variants(document))
    times = Times.of(variants(document), document.comparisons).with_same_clock(variants(document))
    for cell in variants(document):
        [row] = [row for row in rows if f"/cells/{cell.id}/" in row]
        assert cell.accuracy.value is not None
        assert f"{100 * cell.accuracy.value:.1f} %" in row
        assert f'data-value="{cell.model_bytes}"' in row
        assert "kB" in row
        assert f'data-value="{times.with_compared_time(cell).p50_ms:.6g}"' in row
        assert cell.parity.verdict in row
    assert any("on the front" in row for row in rows)


def test_signed_and_unsigned_activations_stand_beside_each_other_with_what_they_ran(
    browser: httpx2.Client, document: Document
) -> None:
    signed = next(cell for cell in variants(document) if SIGNED in cell.recipe)
    unsigned = next(cell for cell in variants(document) if cell.precision == "int8-qdq" and cell.id != signed.id)
    [compared] = [one for one in document.comparisons if {one.baseline, one.candidate} == {signed.id, unsigned.id}]
    assert compared.ratio is not None
    assert compared.operators
    pair = f"{compared.baseline}~{compared.candidate}"
    page = browser.get(f"/runs/{document.run}/?chart=operators&pair={pair}").text
    assert 'id="chart-operators"' in page
    for operator in compared.operators[:3]:
        assert operator.node in page
    for cell in (signed, unsigned):
        shown = browser.get(f"/runs/{document.run}/cells/{cell.id}/").text
        floats = [one for one in cell.operators if one.op_type in ("Conv", "FusedConv")]
        told = "Conv stayed FP32" if floats else "ran in 8 bits"
        assert told in shown
        assert f"Against {variants(document)[0].uploaded} (" in shown


def test_the_runs_page_opens_with_accuracy(browser: httpx2.Client, document: Document) -> None:
    page = browser.get(f"/runs/{document.run}/").text
    assert 'id="chart-pareto"' in page
    assert "against the upload" in page
