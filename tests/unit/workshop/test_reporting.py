"""What quantisation did to the digit classifier: coverage, scales, and the tensors that lost most."""

from pathlib import Path
from typing import Any

import pytest

from farm.contract.cells import Recipe
from farm.workshop import arrays, orders
from farm.workshop.child.variants import make_variant
from farm.workshop.inspection import QuantisedReport
from farm.workshop.samples import builders as samples
from farm.workshop.samples import digits


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The classifier, an empty folder for its variant, and calibration data."""
    samples.write_model("digits", tmp_path / "in")
    (tmp_path / "variant").mkdir()
    return (
        tmp_path / "in",
        tmp_path / "variant",
        arrays.write_npz(tmp_path / "data.npz", digits.make_calibration_data()),
    )


def made(folders: tuple[Path, Path, Path], precision: str, **options: str) -> None:
    folder, variant, data = folders
    payload: dict[str, Any] = {"folder": str(folder), "main": "digits.onnx", "out": str(variant), "opset": None}
    answer = make_variant({**payload, "precision": precision, "options": options, "calibration": str(data)})
    assert "answer" in answer, answer


def report(folders: tuple[Path, Path, Path], tmp_path: Path) -> QuantisedReport:
    (tmp_path / "out").mkdir()
    return orders.report_quantised(
        folders[0], "digits.onnx", variant_dir=folders[1], out_dir=tmp_path / "out", data=folders[2]
    )


def test_a_report_tells_coverage_scales_and_errors(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    made(folders, "int8-qdq", **{"per-channel": "true", "exclude-nodes": "conv2"})
    found = report(folders, tmp_path)
    assert {entry.op_type: (entry.all, entry.kept_float) for entry in found.coverage} == {
        "Conv": (3, ("conv2",)),
        "Gemm": (2, ()),
    }
    assert {len(scales) for name, scales in found.scales.items() if name.startswith("conv1_weight")} == {16}
    assert found.errors is not None
    worst = [error.model_db for error in found.errors if error.model_db is not None]
    assert worst == sorted(worst)
    assert "conv1_relu" in {error.node for error in found.errors}
    assert not list((tmp_path / "out").iterdir())


def test_other_forms_than_qdq_have_coverage_only(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    made(folders, "int8-dynamic")
    found = report(folders, tmp_path)
    assert {entry.op_type: entry.kept_float for entry in found.coverage} == {"Conv": (), "Gemm": ()}
    assert found.errors is None


def test_a_recipe_of_the_contract_is_what_makes_it(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    recipe = Recipe(precision="int8-qoperator", options={"weight": "int8"})
    variant = orders.make_variant(folders[0], "digits.onnx", recipe=recipe, out_dir=folders[1], calibration=folders[2])
    assert variant.history[1] == "Calibrated with 512 samples of data.npz."
