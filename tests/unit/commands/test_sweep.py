"""`onnxfarm sweep`: lines over releases on a made-up bench, the page, and what cannot be asked."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs
from typer.testing import CliRunner

from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.matrices import matrix as matrices
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.releases import ONNXRUNTIME
from onnxfarm.here import sweep
from onnxfarm.main import app
from onnxfarm.problems import Infrastructure
from tests.conftest import MODELS
from tests.unit.commands.made_up import MadeUpBench

pytestmark = pytest.mark.usefixtures("package_index")


def steps(spec: CellSpec) -> float:
    """Slower by a fifth from 1.20.0, back from 1.25.0, slower by a quarter from 1.31.0."""
    release = release_order(spec.runtime.version)
    if release >= release_order("1.31.0"):
        return 1.25
    return 1.2 if release_order("1.20.0") <= release < release_order("1.25.0") else 1.0


def swept(
    bench: MadeUpBench, *, versions: tuple[str, ...] = ONNXRUNTIME, reference: str = "1.29.0", **axes: Any
) -> dict[str, Any]:
    declared = matrices.parse({"batch": [1], "precision": ["fp32"], "provider": ["cpu"], **axes})
    return sweep.measure_sweep(bench, declared, "onnxruntime", versions=versions, reference=reference)


def test_every_release_is_a_ratio_to_the_reference_and_changes_are_marked() -> None:
    bench = MadeUpBench(p50_ms=steps)
    found = swept(bench)
    (line,) = found["lines"]
    assert [point["version"] for point in line["points"]] == list(ONNXRUNTIME)
    by_version = {point["version"]: point for point in line["points"]}
    assert by_version["1.22.0"]["low"] < 1.2 < by_version["1.22.0"]["high"]
    assert by_version["1.29.0"]["ratio"] == 1.0
    turns = [(turn["before"], turn["after"], turn["verdict"], turn["is_paired"]) for turn in line["turns"]]
    assert turns == [
        ("1.19.2", "1.20.0", "slower", True),
        ("1.24.4", "1.25.0", "faster", True),
        ("1.30.0", "1.31.0", "slower", True),
    ]
    assert "3 changes: 20" in line["sentence"]
    assert line["turns"][0]["explanation"].startswith("MatMul: 1 node")
    # the reference stands in each block, and neighbouring blocks share a release
    assert all(versions[0] == "1.29.0" and len(versions) <= 16 for versions in bench.measured)
    assert all(before[-1] == after[1] for before, after in zip(bench.measured, bench.measured[1:], strict=False))


def test_a_change_next_to_a_later_reference_keeps_its_direction() -> None:
    versions: tuple[str, ...] = ("1.30.0", "1.31.0", "1.31.1")
    (line,) = swept(MadeUpBench(p50_ms=steps), versions=versions, reference="1.31.1")["lines"]
    assert [(turn["after"], turn["verdict"]) for turn in line["turns"]] == [("1.31.0", "slower")]
    assert [round(point["ratio"], 1) for point in line["points"]] == [0.8, 1.0, 1.0]
    versions = ("1.30.0", "1.31.0")
    (line,) = swept(MadeUpBench(p50_ms=steps), versions=versions, reference="1.31.0")["lines"]
    (turn,) = line["turns"]
    assert (turn["verdict"], turn["low"] < 1.25 < turn["high"]) == ("slower", True)


def test_each_other_value_is_a_line_of_its_own() -> None:
    found = swept(MadeUpBench(p50_ms=steps), versions=("1.30.0", "1.31.0"), batch=[1, 8])
    assert len(found["lines"]) == 2
    assert {line["label"] for line in found["lines"]} == {
        "encoder, CPU, fp32, batch 1, 1 thread", "encoder, CPU, fp32, batch 8, 1 thread",
    }  # fmt: skip


def test_what_does_not_load_has_its_reason_and_no_ratio() -> None:
    reason = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="It does not load.")
    bench = MadeUpBench(checks=lambda spec: {"reason": reason} if spec.runtime.version == "1.30.0" else {})
    (line,) = swept(bench, versions=("1.29.0", "1.30.0", "1.31.0"))["lines"]
    assert [(point["ratio"] is None, point["reason"]) for point in line["points"]][1] == (True, "It does not load.")
    assert "2 of 3 releases measured, no change between neighbours" in line["sentence"]


def test_nothing_measured_is_the_machines_affair() -> None:
    reason = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text="No index.")
    with pytest.raises(Infrastructure, match="No release could be measured: No index"):
        swept(MadeUpBench(checks=lambda spec: {"reason": reason}), versions=("1.30.0", "1.31.0"))


def test_the_page_holds_all_it_needs_and_text_stays_text() -> None:
    found = swept(MadeUpBench(p50_ms=steps), versions=("1.29.0", "1.30.0", "1.31.0"))
    found["model"] = "</script><b>"
    found["lines"][0]["label"] = "</script><i>"
    page = sweep.render_page(found)
    assert "&lt;/script&gt;&lt;b&gt;" in page
    # the browser's own elements alone: the figure, Plotly, ours
    assert page.count("</script>") == page.count("<script") == 3
    assert 'src="' not in page.replace(get_plotlyjs(), "")
    assert "<td>1.31.0</td>" in page
    assert "slower than 1.30.0" in page
    (trace,) = sweep.make_figure(found)["data"]
    assert trace["x"] == ["1.29.0", "1.30.0", "1.31.0"]
    assert len(sweep.make_figure(found)["layout"]["annotations"]) == 1
    json.dumps(found)
    found["lines"][0]["points"][1]["ratio"] = None
    (trace,) = sweep.make_figure(found)["data"]
    assert trace["x"] == ["1.29.0", "1.30.0", "1.31.0"]
    assert trace["y"][1] is None, "a release that was not measured is a gap"
    assert trace["connectgaps"] is False


def test_a_page_without_plotly_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    ended = CliRunner().invoke(app, ["sweep", str(tmp_path / "none.onnx"), "--html", str(tmp_path / "sweep.html")])
    assert (ended.exit_code, "needs plotly" in ended.stderr, "[server]" in ended.stderr) == (3, True, True)


def test_the_page_has_the_colours_of_the_farms_pages() -> None:
    sheet = Path("dashboard/static/dashboard/farm.css").read_text()
    for token in sweep.TOKENS.strip().splitlines():
        assert token in sheet
    found = swept(MadeUpBench(p50_ms=steps), versions=("1.30.0", "1.31.0"), batch=list(range(1, 10)))
    colours = [trace["line"]["color"] for trace in sweep.make_figure(found)["data"]]  # type: ignore[attr-defined]
    assert colours == [*(f"@series-{number}" for number in range(1, 8)), "@series-other", "@series-other"]
    for colour in colours:
        assert f"--{colour.removeprefix('@')}:" in sweep.TOKENS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ort", "1.40..1.50"], "No release lies in"),
        (["--ort", "1.17.2"], "Unknown release '1.17.2'"),
        (["--ort", "1.30..1.31", "--reference", "1.30..1.31"], "pin one"),
        (["--ort", "1.30..1.31", "--reference", "9"], "Unknown release '9'"),
        (["--distribution", "onnxruntim"], "did you mean 'onnxruntime'"),
        (["--distribution", "onnxruntime-openvino"], "names no release"),
        (["--provider", "cpux"], "did you mean 'cpu'"),
        (["--batch", "0"], "whole number from 1"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(words: list[str], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["sweep", str(MODELS / "relu_op13_ir7.onnx"), *words, "--home", str(tmp_path)])
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    assert said in line
