"""Engines of other people's packages: taken where they are well formed, named and refused as our own, else said."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from farm.contract.cells import CellSpec, Runtime, Workload
from farm.rules.cells import scenarios
from farm.rules.runtimes import engines, releases
from farm.rules.runtimes.engine import Engine
from farm.rules.wording import titles
from tests.unit.rules.making import make_model

ACME = Engine(
    "acme", module="acme_engine", distribution="acme-engine", title="Acme", runner="acme_engine_runner", launch_s=0.5
)
RUNTIME = Runtime(distribution="acme-engine", version="1.0")


def taken(monkeypatch: pytest.MonkeyPatch, entry: object) -> Any:
    module = ModuleType("acme_engines")
    module.ACME = entry  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "acme_engines", module)
    return engines.group(engines.OWN).load([EntryPoint("acme", "acme_engines:ACME", engines.GROUP)])


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines._ENGINE_BY_DISTRIBUTION, ACME.distribution, ACME)


def test_an_entry_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = taken(monkeypatch, ACME)
    assert (found.entries, dict(found.refused)) == ((ACME,), {})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "acme_engines:ACME is a int and has to be an Engine."),
        (replace(ACME, name="Acme!"), "name has 'Acme!', which cannot be one."),
        (replace(ACME, module="acme engine"), "module has 'acme engine', which cannot be one."),
        (replace(ACME, runner=""), "runner has '', which cannot be one."),
        (replace(ACME, distribution=None), "distribution has None, which cannot be one."),
        (replace(ACME, name="torch"), "'torch' is taken."),
        (replace(ACME, distribution="onnxruntime-gpu"), "the package 'onnxruntime-gpu' is taken."),
        (replace(ACME, distribution="onnxruntime-web"), "the package 'onnxruntime-web' is taken."),
        (replace(ACME, title=""), "title has '': write a few words."),
        (replace(ACME, launch_s=-1.0), "launch_s has -1.0: write seconds from 0 to 600."),
    ],
)
def test_one_that_is_malformed_is_left_out_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, entry: object, words: str
) -> None:
    found = taken(monkeypatch, entry)
    assert not found.entries
    assert found.refused["acme"] == f"The engine 'acme' is left out: {words}"


@pytest.mark.usefixtures("_installed")
def test_it_is_named_planned_and_believed_as_its_package_says() -> None:
    engine = engines.engine_of(RUNTIME)
    assert titles.runtime_in_words(RUNTIME) == "Acme 1.0"
    assert releases.unknown_sentence(RUNTIME) is None
    assert (engine.scenario_launch_s(scenarios.parse("single")), engine.check_s(RUNTIME)) == (0.5, 0.0)
    assert (engine.installed_as(RUNTIME), engine.program(RUNTIME), engine.starts_processes(RUNTIME)) == (
        RUNTIME,
        None,
        False,
    )
    assert engine.install_hint(RUNTIME) == ""


@pytest.mark.usefixtures("_installed")
def test_what_it_cannot_do_is_refused_by_the_scenario() -> None:
    spec = CellSpec(artifact_sha256="0" * 64, runtime=RUNTIME, workload=Workload(scenario="generate:prompt=4:new=8"))
    found = scenarios.of_cell(spec).refusals(spec, make_model(), shape_problem=lambda name, size: None)
    assert "acme-engine==1.0 is not measured generating yet: leave generate out for it." in list(found)
