"""Calibration data on the command line: what is taken, what becomes of it, and every bad form in one sentence."""

import io
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper
from rich.console import Console

from farm.rules.cells import recipes
from farm.rules.matrices import matrix as matrices
from farm.workshop import arrays
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits
from onnxfarm.calibration_files import list_sets, list_upload_files, make_sample_warning
from onnxfarm.here import workbench
from onnxfarm.problems import Usage
from onnxfarm.subject import Subject

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write_model("digits", tmp_path_factory.mktemp("digits"))


@pytest.fixture
def said() -> Console:
    return Console(file=io.StringIO(), width=200)


def words(said: Console) -> str:
    assert isinstance(said.file, io.StringIO)
    return said.file.getvalue()


def test_samples_are_named_in_the_recipe_and_few_are_warned_about(model: Path, tmp_path: Path, said: Console) -> None:
    few = {"x": digits.make_calibration_data()["x"][:64]}
    data = arrays.write_npz(tmp_path / "few.npz", few)
    declared = matrices.from_options(runtime="1.31.1", precision="fp32,fp16,int8-qdq,int8-qdq:per-channel")
    with workbench.open_workbench(Subject(model), home=tmp_path / "home", console=said) as bench:
        bench.set_calibration(data)
        (block,) = bench.plan(declared).blocks
        order, refused = bench.measurer.preparation.make_order(block, seed=0)
    assert refused == []
    assert len({arm.bundle.digest for arm in order.arms}) == 4
    digest = {arm.cell.recipe.options.get(recipes.SAMPLES) for arm in order.arms[2:]}
    assert len(digest) == 1
    assert digest != {recipes.RANDOM}
    assert "Warning: 64 calibration samples are few: take at least 100, better 500." in words(said)


def test_the_plan_of_bench_names_the_operator_that_stops_a_conversion(model: Path, tmp_path: Path, said: Console):
    declared = matrices.from_options(runtime="1.31.1", opset="as-is,18,max-of-runtime")
    with workbench.open_workbench(Subject(model), home=tmp_path / "home", console=said) as bench:
        plan = bench.plan(declared)
        reach = bench.measurer.model.opset_reach
    assert [arm.spec.recipe.opset for arm in plan.blocks[0].arms] == ["as-is", 18, 26]
    assert reach.highest == 28


def test_a_folder_of_test_data_is_calibration_data(model: Path, tmp_path: Path, said: Console) -> None:
    pictures = digits.make_calibration_data()["x"]
    for number in (0, 1, 10):
        folder = tmp_path / "data" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        tensor = numpy_helper.from_array(pictures[number : number + 2])
        (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    with workbench.open_workbench(Subject(model), home=tmp_path / "home", console=said) as bench:
        bench.set_calibration(tmp_path / "data")
        taken = bench.measurer.preparation.calibration
        stored = arrays.read_npz(bench.measurer.files.paths[taken.sha256])
    np.testing.assert_array_equal(stored["x"], np.concatenate([pictures[n : n + 2] for n in (0, 1, 10)]))
    names = [name for name, _ in list_upload_files(tmp_path / "data")]
    assert names == [f"test_data_set_{number}-input_0.pb" for number in range(3)]
    assert [len(files) for files in list_sets(tmp_path / "data" / "test_data_set_1")] == [1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"nothing", ".npz"),
        ({"z": np.zeros((9, 1, 8, 8), np.float32)}, "lack the input 'x'"),
        ({"x": np.zeros((9, 1, 8, 9), np.float32)}, "has the shape"),
        ({"x": np.zeros((9, 1, 8, 8), np.int64)}, "is int64, the model takes float32"),
    ],
)
def test_data_that_do_not_fit_are_a_usage_problem(
    model: Path, tmp_path: Path, said: Console, content: object, words: str
) -> None:
    data = tmp_path / "calibration.npz"
    if isinstance(content, bytes):
        data.write_bytes(content)
    elif isinstance(content, dict):
        arrays.write_npz(data, content)
    with (
        workbench.open_workbench(Subject(model), home=tmp_path / "home", console=said) as bench,
        pytest.raises(Usage, match=words),
    ):
        bench.set_calibration(data)


def test_an_empty_folder_is_a_usage_problem(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="holds no test_data_set"):
        list_sets(tmp_path)


def test_enough_samples_go_without_saying() -> None:
    assert make_sample_warning(500) == ""
    assert make_sample_warning(499).startswith("499 calibration samples: 500 or more")
