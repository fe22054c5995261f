"""Hashes of what nodes install: where there are some, what is left without, and that the wheel carries them."""

from pathlib import Path

import pytest

from farm.contract.cells import Runtime
from farm.rules.cells.readers import read_runtime
from farm.rules.runtimes import plugins, providers, releases
from farm.rules.runtimes.provider import Plugin
from tests.conftest import PROJECT
from worker.agent.installation import locks, requirements

LOCKS = sorted((PROJECT / "requirements").glob("node-*.txt"))


def pin_requirements(text: str, *, own: tuple[str, ...] = ()) -> locks.Requirements:
    runtime = Runtime(distribution=text.partition("==")[0], version=text.partition("==")[2])
    return locks.pin_requirements(runtime, requirements.make_recipe(runtime), allowed=own)


@pytest.mark.parametrize("version", releases.ONNXRUNTIME)
def test_every_known_release_is_installed_by_hash_alone(version: str) -> None:
    found = pin_requirements(f"onnxruntime=={version}")
    assert found.is_whole
    assert [line.partition(" ")[0].partition("==")[0] for line in found.lines] == ["onnxruntime", "numpy"]
    assert all(line.count(" --hash=sha256:") >= 4 for line in found.lines)


@pytest.mark.parametrize("one", plugins.PLUGINS, ids=lambda one: one.package)
def test_every_known_plug_in_is_installed_by_hash_with_the_runtime_beside_it(one: Plugin) -> None:
    for version in one.releases:
        found = pin_requirements(f"{one.package}=={version}")
        assert found.is_whole
        assert len(found.lines) == 3


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_node_uses_every_pin_of_the_lock_of_its_provider(path: Path) -> None:
    pins = locks.parse_lock(path.read_text())
    hashes, environments = locks._read_locks()
    assert pins
    for line, found in pins.items():
        assert found, line
        assert hashes[locks.parse_pin(line)] == found, f"{line}: run deploy/lock-runtimes"
    if path.stem != "node-cpu":
        assert list(pins) in environments.values(), "run deploy/lock-runtimes"


@pytest.mark.parametrize(
    "entry", [one for one in providers.PROVIDERS if one.signs and one.probe_with], ids=lambda one: one.short
)
def test_what_a_probe_installs_by_itself_is_locked_whole(entry: providers.Provider) -> None:
    assert pin_requirements(str(read_runtime(entry.probe_with))).is_whole


def test_another_release_keeps_the_hashes_that_are_known_and_is_installed_by_its_number() -> None:
    found = pin_requirements("onnxruntime==1.99.0")
    assert not found.is_whole
    assert found.lines[0] == "onnxruntime==1.99.0"
    assert "--hash=sha256:" in found.lines[1]


def test_a_build_with_dependencies_that_no_lock_pins_is_not_called_whole() -> None:
    found = pin_requirements("onnxruntime-gpu==1.20.0")
    assert not found.is_whole
    assert found.lines[0].startswith("onnxruntime-gpu[cuda,cudnn]==1.20.0 --hash=sha256:")


def test_of_a_package_that_the_owner_builds_no_hash_is_asked() -> None:
    found = pin_requirements("onnxruntime==1.31.1", own=("onnxruntime",))
    assert found.lines[0] == "onnxruntime==1.31.1"
    assert not found.is_whole
    assert not pin_requirements("onnxruntime-gpu==1.26.0", own=("onnxruntime-gpu",)).is_whole


@pytest.mark.parametrize("line", ["-r evil.txt", "numpy", "numpy>=2", "https://evil.example/a.whl", ""])
def test_a_line_that_pins_nothing_has_no_hash(line: str) -> None:
    assert locks.parse_pin(line) == ""
