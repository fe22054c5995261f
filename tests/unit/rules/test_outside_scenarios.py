"""Scenarios of other people's packages: taken where they are well formed, spelled and told as our own, else said."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from farm.base.entry_points import InstalledEntries
from farm.contract.cells import CellSpec, Runtime, Workload
from farm.rules.cells import outside_scenarios, scenarios
from farm.rules.cells.outside_scenarios import Entry, Option
from farm.rules.cells.problems import MatrixProblem
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from tests.unit.rules.making import make_model

PAUSED = Entry(
    name="paused", module="acme_paused.runs", label="with pauses", options={"ms": Option(5.0, 1.0, 100.0)}, launch_s=2.0
)


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Any:
    def offering(**given: object) -> list[EntryPoint]:
        module = ModuleType("acme_paused")
        for name, one in given.items():
            setattr(module, name, one)
        monkeypatch.setitem(sys.modules, "acme_paused", module)
        return [EntryPoint(name, f"acme_paused:{name}", outside_scenarios.GROUP) for name in given]

    return offering


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    there = InstalledEntries((PAUSED,), {"broken": "The scenario 'broken' is left out: no licence."})
    monkeypatch.setattr(scenarios, "OUTSIDE", there)
    monkeypatch.setattr(scenarios, "ENTRIES", {**scenarios.ENTRIES, "paused": PAUSED})


def test_an_entry_is_taken_by_its_name(points: Any) -> None:
    found = outside_scenarios.entry_point_group(scenarios.KINDS).load(points(paused=PAUSED))
    assert (found.entries, found.refused) == ((PAUSED,), {})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "acme_paused:one is a int and has to be an Entry."),
        (replace(PAUSED, name="Paused!"), "name has 'Paused!', which cannot be one."),
        (replace(PAUSED, module="acme paused"), "module has 'acme paused', which cannot be one."),
        (replace(PAUSED, name="fresh"), "'fresh' is taken."),
        (replace(PAUSED, label=""), "label has '': write a few words."),
        (replace(PAUSED, launch_s=-1.0), "launch_s has -1.0: write seconds from 0 to 600."),
        (replace(PAUSED, options={"ms": Option(0.0, 1.0, 2.0)}), "the option 'ms' has Option("),
        (replace(PAUSED, options={"m s": Option(1.0, 1.0, 2.0)}), "the option 'm s' has Option("),
    ],
)
def test_one_that_is_malformed_is_left_out_in_one_sentence(points: Any, entry: object, words: str) -> None:
    found = outside_scenarios.entry_point_group(scenarios.KINDS).load(points(one=entry))
    assert not found.entries
    assert found.refused["one"].startswith(f"The scenario 'one' is left out: {words}")


def test_one_that_cannot_be_imported_stops_nobody_and_says_of_which_package(points: Any) -> None:
    gone = EntryPoint("gone", "acme_paused:GONE", outside_scenarios.GROUP)
    found = outside_scenarios.entry_point_group(()).load([gone, *points(paused=PAUSED)])
    assert found.entries == (PAUSED,)
    assert "acme_paused:GONE cannot be imported (AttributeError" in found.refused["gone"]


def test_two_of_one_name_are_not_both_taken(points: Any) -> None:
    found = outside_scenarios.entry_point_group(()).load(points(first=PAUSED, second=PAUSED))
    assert (found.entries, found.refused["second"]) == (
        (PAUSED,),
        "The scenario 'second' is left out: 'paused' is taken.",
    )


def spec(scenario: str) -> CellSpec:
    runtime = Runtime(distribution="onnxruntime", version="1.31.1")
    return CellSpec(artifact_sha256="0" * 64, runtime=runtime, workload=Workload(scenario=scenario, seed=3))


@pytest.mark.usefixtures("_installed")
def test_it_is_spelled_told_and_ordered_as_our_own() -> None:
    assert (
        scenarios.normalise_text("paused")
        == scenarios.normalise_text({"paused": None})
        == scenarios.normalise_text("paused:ms=5")
        == "paused"
    )
    assert scenarios.normalise_text({"paused": {"ms": 20}}) == "paused:ms=20"
    assert scenarios.describe("paused:ms=20") == "with pauses (ms 20)"
    assert scenarios.describe("paused") == "with pauses"
    assert scenarios.runner_settings(spec("paused:ms=20")) == {"kind": "paused", "seed": 3, "made": {}, "ms": 20.0}
    assert not scenarios.is_plain(spec("paused"))
    assert scenarios.parse("paused").extra_launch_s(None, timed_s=0.3) == 2.0
    declared = {"runtime": ["1.29.0", "1.31.1"], "scenario": ["single", "paused"]}
    plan = planner.plan(matrix.parse(declared), make_model())
    assert [{arm.spec.workload.scenario for arm in block.arms} for block in plan.blocks] == [{"single"}, {"paused"}]
    assert plan.blocks[1].minutes > plan.blocks[0].minutes + 16 * 2.0 / 60.0 - 1e-9


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("pausd", "Unknown scenario 'pausd': did you mean 'paused'?"),
        ("broken", "The scenario 'broken' is left out: no licence."),
        ("paused:mss=4", "Unknown option of paused 'mss': did you mean 'ms'?"),
        ("paused:ms=four", "ms of paused is 'four': write a number from 1 to 100."),
        ({"paused": {"ms": True}}, "ms of paused is True"),
        ("paused:ms=0", "ms of paused is '0'"),
        ({"paused": 4}, "The scenario paused has 4: write its options as name: value."),
    ],
)
def test_what_it_does_not_take_is_refused_in_one_sentence(written: object, words: str) -> None:
    with pytest.raises(MatrixProblem) as refused:
        scenarios.normalise_text(written)
    assert str(refused.value).startswith(words)


def test_one_without_options_says_so() -> None:
    with pytest.raises(MatrixProblem, match="The scenario plain has no options: write `plain` alone"):
        Entry(name="plain", module="a", label="plain").read({"ms": 4})


@pytest.mark.usefixtures("_installed")
def test_it_has_no_streams_of_ours_and_no_browser() -> None:
    declared = {"runtime": "1.31.1", "scenario": "paused", "concurrency": 2}
    (point,) = planner.plan(matrix.parse(declared), make_model()).refused
    assert point.reason.text == "The scenario paused has streams of its own: leave out concurrency 2."
