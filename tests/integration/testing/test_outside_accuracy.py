"""An accuracy metric of a package, that of docs/extending.md: `evaluate` judges by it on real ONNX Runtime."""

import json
from pathlib import Path

import numpy as np
import pytest

from farm.workshop import arrays
from farm.workshop.samples import builders
from tests.integration.testing.test_examples import MODULES
from tests.integration.testing.test_outside_provider import python
from tests.integration.worker.making import share_runtimes


def package(folder: Path) -> Path:
    """What pip leaves of the page's package, without pip."""
    about = folder / "acme_accuracies-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-accuracies\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[onnxfarm.accuracies]\nwithin = acme_accuracies:WITHIN\n")
    for name in ("acme_accuracies", "acme_within"):
        (folder / f"{name}.py").write_text(MODULES[name])
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builders.write_model("digits", tmp_path_factory.mktemp("model"))


def evaluate(packages: Path, home: Path, model: Path, *, labels: np.ndarray) -> tuple[int, str, Path]:
    """Its exit code, all that it said, and where its document is."""
    share_runtimes(home)
    x = np.zeros((4, 1, 8, 8), np.float32)
    data = arrays.write_npz(home / "labelled.npz", {"x": x, "labels": labels})
    asked = ["evaluate", model, "--data", data, "--recipe", "within", "--home", home, "--json", home / "out.json"]
    lock = {"ONNXFARM_HOST_LOCK": str(home / "lock")}
    done = python("from onnxfarm.main import app; app()", packages, *asked, **lock)
    return done.returncode, " ".join((done.stdout + done.stderr).split()), home / "out.json"


def test_evaluate_judges_by_it(tmp_path: Path, model: Path) -> None:
    far = np.zeros((4, 10), np.float32)
    far[0] = 1e6
    code, said, written = evaluate(package(tmp_path / "packages"), tmp_path / "home", model, labels=far)
    assert code == 0, said
    (cell,) = json.loads(written.read_text())["cells"]
    assert (cell["accuracy"]["metric"], cell["accuracy"]["n"]) == ("within", 4)
    assert cell["accuracy"]["value"] <= 0.75


def test_labels_that_do_not_fit_are_refused_by_the_shape_that_it_names(tmp_path: Path, model: Path) -> None:
    labels = np.zeros((4, 3), np.float32)
    code, said, _ = evaluate(package(tmp_path / "packages"), tmp_path / "home", model, labels=labels)
    assert code == 2, said
    assert "within wants the same" in said


def test_without_the_package_it_is_no_metric(tmp_path: Path, model: Path) -> None:
    (tmp_path / "none").mkdir()
    code, said, _ = evaluate(tmp_path / "none", tmp_path / "home", model, labels=np.zeros((4, 10), np.float32))
    assert code == 2
    assert "'within'" in said
