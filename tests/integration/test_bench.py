"""`onnxfarm bench`: real runtimes and runners for what it measures, a sentence and an exit code for what it cannot."""

import json
import os
import signal
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from farm.rules.planning.plans import PlannedBlock
from farm.rules.reporting.records import BlockRecord
from onnxfarm.here.bench import Measurer
from onnxfarm.here.progress import Follower
from onnxfarm.main import app
from tests.integration.worker.making import MODELS

pytestmark = pytest.mark.usefixtures("shortened")

ENCODER = MODELS / "encoder_dyn.onnx"


def bench(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, words), "--home", str(home)])


def sentence(result: Result) -> str:
    """The one sentence of a usage error."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("onnxfarm: ")
    return lines[0]


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    Document.model_validate(found)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("two_rounds")
def test_a_bench_that_is_stopped_between_blocks_keeps_what_it_has_and_ends_with_130(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure_block = Measurer._measure_block

    def then_ctrl_c(self: Measurer, block: PlannedBlock, *, follower: Follower) -> BlockRecord:
        record = measure_block(self, block, follower=follower)
        os.kill(os.getpid(), signal.SIGINT)
        return record

    monkeypatch.setattr(Measurer, "_measure_block", then_ctrl_c)
    out = tmp_path / "out.json"
    result = bench(home, MODELS / "relu_op13_ir7.onnx", "--ort", "1.31.1", "--threads", 2, "--json", out)
    assert result.exit_code == 130, result.stderr
    assert "Stopped before the end" in result.stderr
    assert [cell["status"] for cell in document(out)["cells"]] == ["done"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_runtimes_are_measured_side_by_side_and_judged(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    inputs, expected = ENCODER.with_suffix(".inputs.npz"), ENCODER.with_suffix(".expected.npz")
    result = bench(
        # two threads: samples of one are dropped, and their pairs with them, while other tests keep the cores busy
        home, ENCODER, "--ort", "1.29.0,1.31.1", "--provider", "cpu", "--threads", 2, "--precision", "fp32",
        "--budget", "quick", "--inputs", inputs, "--expected", expected, "--json", out, "--strict",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = document(out)
    assert found["schema"] == "onnxfarm.bench/1"
    cells = {cell["runtime"]: cell for cell in found["cells"]}
    assert set(cells) == {"onnxruntime==1.29.0", "onnxruntime==1.31.1"}
    for cell in cells.values():
        assert (cell["status"], cell["reason"], cell["batch"], cell["threads"]) == ("done", None, 2, 2)
        assert cell["requested_providers"] == cell["active_providers"] == ["CPUExecutionProvider"]
        assert len(cell["samples_ms"]) >= 8  # more when disturbed rounds were replaced
        assert cell["throughput"] == pytest.approx(cell["batch"] * 1000 / cell["p50_ms"])
        assert cell["parity"]["verdict"] == "pass"
        assert cell["parity"]["reference"] == "expected"
        assert sum(share["time_share"] for share in cell["providers"]) == pytest.approx(1.0)
        assert cell["operators"]
        assert cell["session_ms"] > 0
        assert cell["peak_memory_bytes"] > 1 << 20
        assert "--ort" in cell["repeat_command"]
    (comparison,) = found["comparisons"]
    assert comparison["baseline"] == cells["onnxruntime==1.29.0"]["id"]
    assert comparison["candidate"] == cells["onnxruntime==1.31.1"]["id"]
    assert comparison["ci_low"] <= comparison["ratio"] <= comparison["ci_high"]
    assert comparison["verdict"] in ("slower", "faster", "equal", "undecided")
    assert comparison["rounds"] == 8
    # what is measured is told aside, what was found is the output
    assert cells["onnxruntime==1.31.1"]["id"] in result.stdout
    assert "round 1 measured" in result.stderr
    assert "round 1 measured" not in result.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("two_rounds")
def test_a_runtime_named_twice_makes_an_a_a_pair_and_json_goes_to_stdout(home: Path) -> None:
    # two threads: one is measured again and again while other tests keep the cores busy
    done = bench(home, MODELS / "relu_op13_ir7.onnx", "--ort", "1.31.1,1.31.1", "--threads", 2, "--json", "-")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    first, second = found["cells"]
    assert first["digest"] == second["digest"]
    assert first["id"] != second["id"]
    assert len(found["comparisons"]) == 1
    # how many there are is for the machine to say, which other tests keep busy
    assert "round 1 measured" in done.stderr


def test_a_model_no_runtime_can_take_is_a_refused_cell_and_exit_code_1(home: Path, tmp_path: Path) -> None:
    for name, code in (("relu_ir_future", "ir_too_new"), ("custom_op", "custom_domain")):
        out = tmp_path / f"{name}.json"
        assert bench(home, MODELS / f"{name}.onnx", "--json", out).exit_code == 1
        (cell,) = document(out)["cells"]
        assert cell["status"] == "refused"
        assert cell["reason"]["code"] == code
        assert cell["p50_ms"] is None


def test_a_provider_that_is_in_no_given_runtime_is_exit_code_1_and_its_way_out_names_the_path(home: Path) -> None:
    model = MODELS / "relu_op13_ir7.onnx"
    done = bench(home, model, "--ort", "1.29.0,1.31.1", "--provider", "cuda")
    assert done.exit_code == 1, done.output
    assert "None of 2 cells could be measured;" in done.stderr.strip().splitlines()[-1]
    assert f": onnxfarm bench {model} --ort " in done.stdout


def test_an_opset_above_what_a_runtime_loads_is_refused_there(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert bench(home, MODELS / "relu_op26_ir13.onnx", "--ort", "1.15.1,1.24.1", "--json", out).exit_code == 1
    assert [cell["reason"]["code"] for cell in document(out)["cells"]] == ["opset_too_new"] * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ort", "1.99.9"], "1.99.9 does not exist"),
        (["--ort", "fastest"], "'fastest'"),
        (["--provider", "cpux"], "did you mean 'cpu'"),
        (["--precision", "int9"], "Unknown precision 'int9'"),
        (["--budget", "quik"], "did you mean 'quick'"),
        (["--batch", "0"], "from 1"),
        (["--batch", "many"], "'many'"),
        (["--threads", "-1"], "'-1'"),
        (["--shape", "seq"], "NAME=SIZE"),
        (["--shape", "sequence=3"], "'sequence'"),
        (["--matrix", '{"runtimes": ["1.31.1"]}'], "did you mean 'runtime'"),
        (["--matrix", "no-such-file.yaml"], "no-such-file.yaml"),
        (["--inputs", "no-such-file.npz"], "no-such-file.npz"),
        (["--expected", str(MODELS / "encoder_dyn.expected.npz")], "--inputs"),
        (["--inputs", str(MODELS / "encoder_dyn.inputs.npz"), "--batch", "4"], "have batch 2"),
        (["--inputs", str(MODELS / "cnn_dyn.inputs.npz")], "input_ids"),
        (["--inputs", str(ENCODER)], "encoder_dyn.onnx is not an .npz"),
        (
            ["--inputs", str(MODELS / "encoder_dyn.inputs.npz"), "--expected", str(MODELS / "encoder_dyn.inputs.npz")],
            "outputs are y",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_told_in_one_sentence(home: Path, options: list[str], words: str) -> None:
    assert words in sentence(bench(home, ENCODER, *options))


def test_a_file_that_is_no_model_is_told_in_one_sentence(home: Path, tmp_path: Path) -> None:
    content = ENCODER.read_bytes()
    forms = {"empty": b"", "text": b"hello, this is no model", "cut": content[: len(content) // 2]}
    for name, form in forms.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(form)
        assert f"{name}.onnx" in sentence(bench(home, path))
    assert "is not a file" in sentence(bench(home, tmp_path / "absent.onnx"))
    (tmp_path / "model.txt").write_bytes(content)
    assert "neither an .onnx nor a .zip" in sentence(bench(home, tmp_path / "model.txt"))


def test_missing_external_data_is_named(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "mlp_external.onnx"
    path.write_bytes((MODELS / "mlp_external.onnx").read_bytes())
    assert "mlp_external.onnx.data" in sentence(bench(home, path))


def test_a_zip_is_judged_by_its_list(home: Path, tmp_path: Path) -> None:
    def zipped(name: str, **files: bytes) -> Path:
        path = tmp_path / f"{name}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for entry, content in files.items():
                archive.writestr(entry.replace("__", "/"), content)
        return path

    content = ENCODER.read_bytes()
    assert "2 .onnx files" in sentence(bench(home, zipped("two", **{"a.onnx": content, "b.onnx": content})))
    assert "without folders" in sentence(bench(home, zipped("nested", **{"models__a.onnx": content})))
    assert "0 files" in sentence(bench(home, zipped("none")))
    (tmp_path / "damaged.zip").write_bytes(b"PK\x03\x04 nothing behind it")
    assert "damaged" in sentence(bench(home, tmp_path / "damaged.zip"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("two_rounds")
def test_a_zip_with_external_data_is_measured_on_inputs_of_its_own(home: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "mlp.zip", tmp_path / "out.json"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("mlp_external.onnx", "mlp_external.onnx.data"):
            archive.write(MODELS / name, name)
    with np.load(MODELS / "mlp_external.inputs.npz") as given:
        batch = next(iter(given.values())).shape[0]
    result = bench(home, path, "--threads", 2, "--inputs", MODELS / "mlp_external.inputs.npz", "--json", out)
    assert result.exit_code == 0, result.stderr
    (cell,) = document(out)["cells"]
    assert (cell["status"], cell["batch"], cell["parity"]["verdict"]) == ("done", batch, "pass")


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = bench(tmp_path / "file" / "home", ENCODER)
    assert result.exit_code == 3
    assert "--home" in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_glance_measures_each_cell_once_and_says_how_to_compare(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = bench(
        home, ENCODER, "--ort", "1.29.0,1.31.1", "--budget", "glance", "--json", out,
        "--inputs", ENCODER.with_suffix(".inputs.npz"),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = document(out)
    assert (found["budget"], found["comparisons"]) == ("glance", [])
    for cell in found["cells"]:
        assert (cell["status"], len(cell["samples_ms"]), cell["operators"]) == ("done", 1, [])
        # one thread of the CPU provider: its processor time stands beside wall time
        assert len(cell["cpu_samples_ms"]) == 1
        assert 0 < cell["cpu_p50_ms"] < 3 * cell["p50_ms"]
    assert "This is a glance" in result.output
    assert "`--budget quick`" in result.output.replace("\n", " ")
