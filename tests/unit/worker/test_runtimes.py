"""How runtimes are installed, remembered and evicted; uv itself is real, its network is not needed here."""

import json
import os
from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from farm.contract.reasons import ReasonCode
from worker.agent.installation import installer, requirements
from worker.agent.installation.runtimes import MARKER, RuntimeStore, RuntimeUnavailableError
from worker.agent.installation.stages import compile_stage, stage_runner


def runtime(version: str, distribution: str = "onnxruntime") -> Runtime:
    return Runtime(distribution=distribution, version=version)


@pytest.mark.parametrize(
    ("version", "numpy", "pythons"),
    [
        ("1.15.0", requirements.NUMPY_1, (8, 11)),
        ("1.18.1", requirements.NUMPY_1, (8, 12)),
        ("1.19.2", requirements.NUMPY_2, (8, 12)),
        ("1.23.2", requirements.NUMPY_2, (10, 13)),
        ("1.31.1", requirements.NUMPY_2, (11, 14)),
    ],
)
def test_a_release_names_its_numpy_and_the_pythons_it_has_wheels_for(
    version: str, numpy: str, pythons: tuple[int, int]
) -> None:
    recipe = requirements.make_recipe(runtime(version))
    assert recipe.requirements == (f"onnxruntime=={version}", numpy)
    assert not recipe.with_dependencies
    assert requirements.find_supported_pythons(runtime(version)) == pythons


def test_a_build_for_gpus_brings_its_libraries() -> None:
    recipe = requirements.make_recipe(runtime("1.26.0", "onnxruntime-gpu"))
    assert recipe.requirements[0] == "onnxruntime-gpu[cuda,cudnn]==1.26.0"
    assert recipe.with_dependencies


def test_a_plug_in_is_installed_beside_a_pinned_runtime() -> None:
    plugin = runtime("0.4.0", "onnxruntime-ep-webgpu")
    recipe = requirements.make_recipe(plugin)
    assert recipe.requirements == ("onnxruntime-ep-webgpu==0.4.0", "onnxruntime==1.31.1", requirements.NUMPY_2)
    assert not recipe.with_dependencies
    assert requirements.find_supported_pythons(plugin) == (11, 14)


def test_an_unknown_distribution_is_tried_with_any_python() -> None:
    assert requirements.find_supported_pythons(runtime("1.0", "something-else")) is None


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of a==9 and you "
            "require a==9, we can conclude that your requirements are unsatisfiable.\n",
            "Because there is no version of a==9",
        ),
        ("error: No solution found\n  cause: Because nothing fits\n", "Because nothing fits"),
        ("Using Python 3.11\nerror: Failed to fetch: `https://example.org/a`\n", "Failed to fetch"),
        ("Traceback (most recent call last):\nImportError: libcudart.so.12: cannot open\n", "libcudart.so.12"),
        ("", "no output"),
    ],
)
def test_the_essential_line_of_an_installer_is_found(said: str, line: str) -> None:
    assert line in installer.extract_error_line(said)


def test_what_no_launch_imports_is_not_compiled(tmp_path: Path) -> None:
    import sys

    packages = tmp_path / "tests" / "runtime" / "lib" / "python3.11" / "site-packages"
    for name in ("numpy/core", "numpy/core/tests/case", "onnxruntime/session", "onnxruntime/transformers/bert"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / f"{name}.py").touch()
    installer._compile_packages(tmp_path / "tests" / "runtime", python=Path(sys.executable))
    assert sorted(path.name.partition(".")[0] for path in packages.rglob("*.pyc")) == ["core", "session"]


def pretend(store: RuntimeStore, version: str, *, used_at: float, size: int = 100) -> Path:
    """An environment that looks installed."""
    place = store.folder / f"onnxruntime-{version}"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").touch()
    marker = {"runtime": {"distribution": "onnxruntime", "version": version}, "python": "3.11.7", "bytes": size,
              "providers": ["CPUExecutionProvider"], "packages": {"onnxruntime": version}}  # fmt: skip
    (place / MARKER).write_text(json.dumps(marker))
    os.utime(place / MARKER, (used_at, used_at))
    return place


def test_an_installed_runtime_is_given_again_without_installing(tmp_path: Path) -> None:
    store = RuntimeStore(tmp_path)
    place = pretend(store, "1.31.1", used_at=1)
    found = store.provide(runtime("1.31.1"))
    assert (found.folder, found.python_version) == (place, "3.11.7")
    assert (place / MARKER).stat().st_mtime > 1
    assert [one.runtime for one in store.list_installed()] == [runtime("1.31.1")]


def test_an_environment_without_its_marker_or_interpreter_is_not_there(tmp_path: Path) -> None:
    store = RuntimeStore(tmp_path)
    (pretend(store, "1.30.0", used_at=1) / MARKER).unlink()
    (pretend(store, "1.31.1", used_at=1) / "bin" / "python").unlink()
    assert store.list_installed() == ()


def test_the_runtime_used_longest_ago_goes_and_those_of_the_block_stay(tmp_path: Path) -> None:
    said: list[str] = []
    store = RuntimeStore(tmp_path, limit_bytes=250, say=said.append)
    for age, version in enumerate(["1.20.0", "1.21.0", "1.22.0", "1.23.0"]):
        pretend(store, version, used_at=age)
    store._evict(keep=[runtime("1.20.0")])
    assert [one.runtime.version for one in store.list_installed()] == ["1.20.0", "1.23.0"]
    assert "1.21.0" in said[0]


def test_a_failed_install_is_a_reason_and_is_remembered_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # no network and nothing cached
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    said: list[str] = []
    store = RuntimeStore(tmp_path / "store", say=said.append)
    for _ in range(2):
        with pytest.raises(RuntimeUnavailableError) as raised:
            store.provide(runtime("1.31.0"))
        assert raised.value.reason.code == ReasonCode.RUNTIME_INSTALL_FAILED
        assert "onnxruntime" in raised.value.reason.text
    assert len(said) == 1, "the second time the failure is remembered"
    assert store.list_installed() == ()
    assert not (store.folder / "onnxruntime-1.31.0").exists()


def test_a_runtime_whose_python_is_not_on_this_machine_says_which_one_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "_WHEELS", (((0, 0), (4, 5)),))
    with pytest.raises(RuntimeUnavailableError, match=r"install Python 3\.5"):
        RuntimeStore(tmp_path).provide(runtime("1.31.1"))


def test_the_stage_holds_the_runner_alone_and_is_made_once(tmp_path: Path) -> None:
    import sys

    stage = stage_runner(tmp_path)
    assert stage_runner(tmp_path) == stage
    assert {path.name for path in stage.iterdir()} == {"__main__.py", "worker"}
    assert {path.name for path in (stage / "worker").iterdir()} == {"__init__.py", "runner"}
    compile_stage(stage, python=Path(sys.executable))
    assert list(stage.glob("worker/runner/__pycache__/entry.*.pyc"))
