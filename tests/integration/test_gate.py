"""`onnxfarm gate` on real runtimes: exit codes, and what it writes."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes.listings import Listing
from onnxfarm.main import app
from tests.integration.worker.making import MODELS

pytestmark = pytest.mark.usefixtures("shortened")

RELU = MODELS / "relu_op13_ir7.onnx"


def gate(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["gate", *map(str, words), "--home", str(home)])


def sentence(result: Result) -> str:
    """The one sentence of a usage error."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("onnxfarm: ")
    return line


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_candidate_that_computes_the_same_passes_and_writes_its_reports(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    files = {name: tmp_path / name for name in ("summary", "junit", "benchmark-json", "json")}
    result = gate(
        # two threads: samples of one are dropped, and their pairs with them, while other tests keep the cores busy
        home, RELU, "--baseline", "1.29.0", "--candidate", "1.31.1", "--rounds", 8, "--threads", 2,
        "--fail-on", "parity,placement,failed",
        *(word for name, path in files.items() for word in (f"--{name}", path)),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "The gate passed: 1 comparison" in result.stderr
    assert files["summary"].read_text().startswith("## ✅ onnxfarm gate: passed")
    assert step.read_text().startswith("before\n### ✅ ")
    assert "on your own machine" in step.read_text()
    suite = ElementTree.fromstring(files["junit"].read_text())
    assert [case.get("classname") for case in suite] == ["onnxfarm.parity", "onnxfarm.placement", "onnxfarm.failed"]
    assert suite.get("failures") == "0"
    entries = json.loads(files["benchmark-json"].read_text())
    assert [entry["unit"] for entry in entries] == ["ratio", "ms", "ms"]
    document = Document.model_validate_json(files["json"].read_text())
    assert [str(cell.runtime) for cell in document.cells] == ["onnxruntime==1.29.0", "onnxruntime==1.31.1"]
    assert document.comparisons[0].rounds == 8


def test_a_gate_that_runs_out_of_time_ends_with_4(home: Path) -> None:
    result = gate(home, RELU, "--baseline", "1.29.0", "--candidate", "1.31.1", "--timeout", "0.0001")
    assert result.exit_code == 4, result.stderr
    assert "--timeout" in result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--candidate", "1.29.0"], "both onnxruntime==1.29.0"),
        (["--candidate", "fastest"], "--candidate: Unknown distribution 'fastest'"),
        (["--candidate", "1.17.2"], "1.17.2 does not exist"),
        (["--candidate", "1.31.1", "--fail-on", "slow"], "did you mean 'slower'"),
        (["--candidate", "1.31.1", "--metric", "p99"], "did you mean 'p99_ms'"),
        (["--candidate", "1.31.1", "--fail-on", ","], "is empty"),
        (["--candidate", "1.31.1", "--timeout", "0"], "minutes above 0"),
        (["--candidate", "1.31.1", "--rounds", "4"], "8 to 96"),
        (["--candidate", "1.31.1", "--rounds", "8", "--budget", "precise"], "16 to 96"),
        (["--candidate", "1.31.1", "--max-slowdown", "much"], "such as '5 %'"),
        (["--candidate", "1.31.1", "--max-slowdown", "nan"], "such as '5 %'"),
        (["--candidate", "1.31.1", "--server", "https://farm.example", "--ci"], "--ci is about this machine"),
        (["--candidate", "1.31.1", "--branch", "faster"], "--branch is told to a farm"),
        (["--candidate", "1.31.1", "--matrix", '{"runtime": ["1.31.1"]}'], "leave `runtime` out"),
        (["--candidate", "1.31.1", "--matrix", '{"opset": ["max-of-runtime"]}'], "nothing could be compared"),
        (["--candidate", "1.31.1", "--expected", "some.npz"], "--inputs"),
        (["--candidate", "1.31.1", "--provider", "cpux"], "did you mean 'cpu'"),
        (["--candidate", "1.31.1", "--server", "farm.example"], "http://"),
        (
            ["--candidate", "1.31.1", "--server", "https://farm.example", "--rounds", "8"],
            "--rounds works on this machine only",
        ),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(home: Path, options: list[str], words: str) -> None:
    assert words in sentence(gate(home, RELU, "--baseline", "1.29.0", *options))


def test_a_model_that_is_not_there_is_said_in_a_sentence(home: Path) -> None:
    assert "not a file" in sentence(gate(home, "none.onnx", "--baseline", "1.29.0", "--candidate", "1.31.1"))


@pytest.mark.parametrize(
    ("offered", "code", "words"),
    [(("1.31.1",), 2, "3.8 to 3.11 only"), ((), 3, "index"), (("1.29.0",), 3, "3.8 to 3.11 only")],
)
def test_a_release_without_a_wheel_here_is_the_askers_affair_while_the_index_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offered: tuple[str, ...], code: int, words: str
) -> None:
    text = "It could not be installed: it has wheels for Python 3.8 to 3.11 only."
    failed = Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text=text).model_dump_json()
    (tmp_path / "runtimes").mkdir()
    for version in ("1.29.0", "1.31.1"):
        # what the last try left behind, which is believed for some minutes
        (tmp_path / "runtimes" / f"onnxruntime-{version}.failed").write_text(failed)
    monkeypatch.setattr("onnxfarm.here.release_index.fetch_listing", lambda distribution: Listing(offered))
    result = gate(tmp_path, RELU, "--baseline", "1.29.0", "--candidate", "1.31.1", "--rounds", 8)
    assert (result.exit_code, words in result.stderr.splitlines()[-1]) == (code, True), result.stderr
