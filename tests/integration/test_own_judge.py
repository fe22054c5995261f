"""`--judge FILE.py:FUNCTION`: a function of the user's own judges what real runners give, and never on a farm."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import onnxfarm
from farm.contract.document import Document
from farm.contract.document_cells import Accuracy
from farm.workshop import arrays
from farm.workshop.samples import builders, digits
from onnxfarm.main import app
from onnxfarm.problems import Usage

SURE = """
import numpy as np
from pathlib import Path

def sure(outputs, data):
    scores = outputs["y"].astype(np.float64)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares[np.arange(len(shares)), data["labels"]] / shares.sum(axis=1)

def off(outputs, data):
    return 1.0 - float(sure(outputs, data).mean())

off.lower_is_better = True

def peeking(outputs, data):
    return float(len(Path("/etc/shadow").read_text()))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builders.write_model("digits", tmp_path_factory.mktemp("model"))


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SURE)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return arrays.write_npz(tmp_path / "labelled.npz", digits.make_evaluation_data())


def call(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words), "--home", str(home)])


def accuracies(out: Path) -> list[Accuracy]:
    return [cell.accuracy for cell in Document.model_validate(json.loads(out.read_text())).cells if cell.accuracy]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_program_names_its_judge_as_the_command_does(home: Path, model: Path, judge: Path, data: Path) -> None:
    asked = {"evaluation": data, "home": home, "quiet": True, "budget": "glance"}
    results = onnxfarm.bench(model, judge=f"{judge}:off", **asked)
    accuracy = results.cells[0].accuracy
    assert accuracy is not None
    assert (accuracy.metric, accuracy.higher_is_better, accuracy.n) == ("off", False, 540)
    with pytest.raises(Usage, match=r"FILE\.py:FUNCTION"):
        onnxfarm.bench(model, judge=str(judge), **asked)
    with pytest.raises(Usage, match="--judge judges in place of a --recipe"):
        onnxfarm.compare(model, model, judge=f"{judge}:off", recipe="top5", **asked)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_variants_are_judged_by_it_with_a_paired_interval(
    home: Path, model: Path, judge: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    asked = ("--data", data, "--judge", f"{judge}:sure", "--precision", "fp32,int8-dynamic", "--json", out)
    result = call(home, "evaluate", model, *asked)
    assert result.exit_code == 0, result.stderr
    plain, dynamic = accuracies(out)
    assert (plain.metric, plain.recipe, plain.n, plain.higher_is_better) == ("sure", "mine.py:sure", 540, True)
    assert plain.judge_sha256 == hashlib.sha256(judge.read_bytes()).hexdigest()
    assert plain.value is not None
    assert 0.9 < plain.value <= 1.0
    assert dynamic.difference_low is not None
    assert dynamic.difference_high is not None
    assert dynamic.difference_low <= dynamic.difference_high


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_bench_takes_one_float_of_all_whose_direction_the_function_says(
    home: Path, model: Path, judge: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    asked = ("--evaluation", data, "--judge", f"{judge}:off", "--budget", "glance", "--ort", "1.31.1", "--json", out)
    result = call(home, "bench", model, *asked)
    assert result.exit_code == 0, result.stderr
    (found, *_) = accuracies(out)
    assert (found.metric, found.higher_is_better, found.ci_low) == ("off", False, None)
    assert found.value is not None
    assert 0.0 <= found.value < 0.1
    assert "off 0.0" in result.stdout


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("function", "words"), [("peeking", "line 16, in peeking"), ("gone", "is not a function there")]
)
def test_one_that_fails_in_the_walls_ends_in_its_own_lines(
    home: Path, model: Path, judge: Path, data: Path, function: str, words: str
) -> None:
    result = call(home, "evaluate", model, "--data", data, "--judge", f"{judge}:{function}")
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--judge", "mine.py"), "write FILE.py:FUNCTION"),
        (("--judge", "mine.py:a-b"), "write FILE.py:FUNCTION"),
        (("--judge", "mine.py:sure:best"), "write FILE.py:FUNCTION"),
        (("--judge", "mine.py:top1"), "call it otherwise"),
        (("--judge", "mine.py:sure", "--recipe", "top1"), "leave --recipe out"),
        (("--judge", "nowhere.py:sure"), "nowhere.py cannot be read"),
    ],
)
def test_a_judge_that_cannot_be_meant_is_told(
    home: Path, model: Path, data: Path, words: tuple[str, ...], told: str
) -> None:
    result = call(home, "evaluate", model, "--data", data, *words)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())


def test_it_wants_samples(home: Path, model: Path, judge: Path) -> None:
    result = call(home, "bench", model, "--judge", f"{judge}:sure")
    assert result.exit_code == 2
    assert "give it with --evaluation" in " ".join(result.stderr.split())


def test_samples_without_the_models_inputs_are_refused(home: Path, model: Path, judge: Path, tmp_path: Path) -> None:
    for arrays_of in ({"z": np.zeros((2, 1, 8, 8), np.float32)}, {"x": np.zeros((0, 1, 8, 8), np.float32)}):
        data = arrays.write_npz(tmp_path / "samples.npz", arrays_of)
        result = call(home, "evaluate", model, "--data", data, "--judge", f"{judge}:sure")
        assert result.exit_code == 2
        assert "samples.npz" in " ".join(result.stderr.split())


def test_no_command_of_a_farm_takes_one(home: Path, model: Path, judge: Path, data: Path) -> None:
    asked = ("submit", model, "--evaluation", data, "--judge", f"{judge}:sure")
    assert CliRunner().invoke(app, [*map(str, asked)]).exit_code == 2
    gate = ("gate", model, "--candidate", "1.31.1", "--server", "http://127.0.0.1:9", "--judge", f"{judge}:sure")
    assert call(home, *gate, "--evaluation", data).exit_code == 2
