"""`onnxfarm evaluate` and `bench --evaluation`: real runners on real labels, and a sentence for what does not fit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from farm.contract.document import Document
from farm.workshop import arrays
from farm.workshop.samples import builders, digits
from onnxfarm.main import app


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builders.write_model("digits", tmp_path_factory.mktemp("model"))


def labelled(folder: Path, **changes: Any) -> Path:
    data = {name: value for name, value in {**digits.make_evaluation_data(), **changes}.items() if value is not None}
    return arrays.write_npz(folder / "labelled.npz", data)


def call(home: Path, *words: object) -> Result:
    return CliRunner().invoke(app, [*map(str, words), "--home", str(home)])


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_variants_are_judged_sample_by_sample_against_fp32(home: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    precisions = "fp32,int8-dynamic,fp16:keep-io=false"
    result = call(
        home, "evaluate", model, "--data", labelled(tmp_path), "--precision", precisions, "--json", out, "--strict"
    )
    assert result.exit_code == 0, result.stderr
    document = Document.model_validate(json.loads(out.read_text()))
    plain, dynamic, half = document.cells
    assert [cell.status for cell in document.cells] == ["done"] * 3
    assert dynamic.accuracy is not None
    assert half.accuracy is not None
    assert plain.accuracy.value is not None
    assert plain.accuracy.value > 0.97
    for found in (dynamic.accuracy, half.accuracy):
        assert (found.baseline, found.n) == (plain.id, 540)
        assert found.difference is not None
        assert abs(found.difference) < 0.02
    assert plain.p50_ms is None
    assert "3 of 3 cells were judged" in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_variant_that_cannot_be_judged_says_why_and_ends_alone(home: Path, model: Path, tmp_path: Path) -> None:
    data = labelled(tmp_path, labels=np.zeros((540, 10), np.float32))
    result = call(
        home, "evaluate", model, "--data", data, "--recipe", "softmax+mse", "--ort", "1.31.1", "--provider", "cpu,cuda"
    )
    assert result.exit_code == 0, result.stderr
    assert "1 of 2 cells were judged" in result.stderr
    assert "CUDA" in result.stderr


@pytest.mark.parametrize(
    ("changes", "words", "told"),
    [
        ({"labels": None}, (), "holds no array called 'labels'"),
        ({"labels": np.zeros(3, np.int64)}, (), "for 3 labels"),
        ({"labels": np.full(540, -1)}, (), "reach from -1"),
        ({"x": np.zeros((540, 3), np.float32)}, (), "has the shape [64, 3]"),
        ({}, ("--recipe", "top3"), "--recipe: Unknown metric 'top3'"),
        ({}, ("--recipe", "mse"), "mse"),
        ({}, ("--recipe", "top1@z"), "no output 'z'"),
    ],
)
@pytest.mark.parametrize("command", [("evaluate", "--data"), ("bench", "--evaluation")])
def test_data_that_do_not_fit_end_in_one_sentence(
    home: Path, model: Path, tmp_path: Path, changes: Any, words: Any, told: str, command: tuple[str, str]
) -> None:
    name, option = command
    result = call(home, name, model, option, labelled(tmp_path, **changes), "--ort", "1.31.1", *words)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_what_is_no_file_or_no_archive_is_told(home: Path, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"no archive" * 10)
    for path, told in ((tmp_path / "missing.npz", "cannot be read"), (broken, "not an .npz archive")):
        result = call(home, "evaluate", model, "--data", path)
        assert (result.exit_code, told in result.stderr) == (2, True), result.output


def test_a_recipe_without_data_is_refused(home: Path, model: Path) -> None:
    result = call(home, "bench", model, "--recipe", "top5", "--ort", "1.31.1")
    assert result.exit_code == 2
    assert "add them with --evaluation" in result.stderr
