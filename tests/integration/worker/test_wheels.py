"""A build of ONNX Runtime that is given as a wheel: what is taken in, and what is installed of it."""

import hashlib
import os
from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from onnxfarm.here import bisection
from onnxfarm.here.release_index import WHEELS, find_unknown_runtimes, resolve_runtimes
from onnxfarm.problems import Usage
from tests.integration.worker.wheels import make_wheel
from worker.agent.installation import wheels
from worker.agent.installation.runtimes import RuntimeStore, RuntimeUnavailableError

BUILD = {"onnxruntime/__init__.py": "__version__ = '1.31.1'\ndef get_available_providers():\n    return []\n"}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A build of one's own that says to be a release that everybody knows."""
    return make_wheel(tmp_path / "dist", "onnxruntime", "1.31.1", BUILD)


def test_a_wheel_on_disk_is_a_runtime_of_its_own_that_is_installed_from_the_file(wheel: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    text = resolve_runtimes(f"1.29.0, {wheel}", home=tmp_path)
    assert text == f"1.29.0,onnxruntime==1.31.1+sha{digest[:7]}"
    runtime = Runtime.of(text.partition(",")[2])
    wheel.unlink()
    assert find_unknown_runtimes([runtime], home=tmp_path) == (runtime,), "no index is asked for it"
    found = RuntimeStore(tmp_path / "runtimes", wheels=tmp_path / WHEELS).provide(runtime)
    assert (found.runtime, found.packages["onnxruntime"], found.providers) == (runtime, "1.31.1", ())
    assert found.packages.keys() == {"onnxruntime", "numpy"}


def test_another_build_of_the_same_number_is_another_runtime(wheel: Path, tmp_path: Path) -> None:
    other = make_wheel(tmp_path / "again", "onnxruntime", "1.31.1", {**BUILD, "onnxruntime/more.py": ""})
    first, second, again = (wheels.import_wheel(path, tmp_path / WHEELS) for path in (wheel, other, wheel))
    assert first == again != second
    assert wheels.find_wheel(second, tmp_path / WHEELS).read_bytes() == other.read_bytes()


def test_a_wheel_is_one_side_of_a_bisection(wheel: Path, tmp_path: Path) -> None:
    bad = wheels.import_wheel(wheel, tmp_path / WHEELS)
    versions = bisection.list_candidates(Runtime.of("onnxruntime==1.30.0"), bad, home=tmp_path)
    assert (versions[0], versions[-1]) == ("1.30.0", bad.version)
    assert "1.31.1" in versions


def test_a_node_and_another_home_have_no_such_runtime(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = wheels.import_wheel(wheel, tmp_path / WHEELS)
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(RuntimeUnavailableError, match="could not be installed"):
        RuntimeStore(tmp_path / "runtimes").provide(runtime)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing-1.0-py3-none-any.whl", "cannot be read"),
        ("build.whl", "is not named like a wheel"),
        ("onnxruntime-1.31.1.whl", "is not named like a wheel"),
        ("onnxruntime-one-py3-none-any.whl", "is not named like a wheel"),
        ("onnxruntime-1!9.9-py3-none-any.whl", "is not named like a wheel"),
        ("onnxruntime-1.33.0.dev202611200011234-py3-none-any.whl", "is not named like a wheel"),
        ("evil_package-1.31.1-py3-none-any.whl", "is a wheel of evil-package"),
        ("onnxruntime_ep_webgpu-0.4.0-py3-none-any.whl", "is a wheel of onnxruntime-ep-webgpu"),
        ("onnxruntime-1.31.1-cp311-cp311-win_amd64.whl", "is for win_amd64, which this machine is not"),
    ],
)
def test_what_is_no_build_for_this_machine_is_refused_in_a_sentence(tmp_path: Path, name: str, words: str) -> None:
    if "missing" not in name:
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(Usage, match=words):
        resolve_runtimes(str(tmp_path / name), home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_folder_that_is_called_like_a_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime-1.31.1-py3-none-any.whl").mkdir()
    with pytest.raises(Usage, match="cannot be read"):
        resolve_runtimes(str(tmp_path / "onnxruntime-1.31.1-py3-none-any.whl"), home=tmp_path / "home")


def test_a_file_that_is_no_wheel_inside_ends_with_the_installers_words(tmp_path: Path) -> None:
    path = tmp_path / "onnxruntime-1.31.1-py3-none-any.whl"
    path.write_bytes(os.urandom(1000))
    runtime = wheels.import_wheel(path, tmp_path / WHEELS)
    with pytest.raises(RuntimeUnavailableError, match="could not be installed"):
        RuntimeStore(tmp_path / "runtimes", wheels=tmp_path / WHEELS).provide(runtime)


@pytest.mark.parametrize(
    ("tag", "pythons"),
    [
        ("cp311-cp311", (11, 11)), ("cp310.cp312-none", (10, 12)), ("cp39-abi3", (9, 99)), ("py3-none", None),
    ],
)  # fmt: skip
def test_a_wheel_says_which_interpreters_it_is_for(tag: str, pythons: tuple[int, int] | None) -> None:
    assert wheels.find_supported_pythons(Path(f"onnxruntime-1.33.0-{tag}-any.whl")) == pythons
