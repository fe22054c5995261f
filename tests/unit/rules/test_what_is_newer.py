"""A release after every list that stands here: planned, installed, and refused by none of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from farm.contract.cells import Loads, Runtime
from farm.rules.cells.readers import read_runtime
from farm.rules.runtimes import allowances, distributions, frameworks, opsets, plugins, providers, releases, web
from farm.rules.runtimes.distributions import RuntimeProblem
from farm.rules.runtimes.releases import Known
from tests.unit.rules.making import make_model, plan_of
from worker.agent.installation import locks, requirements

FUTURE = "1.99.0"
# whose numbers are beyond 1.99.0 already
NUMBERS = {"onnxruntime-qnn": "99.0.0", "onnxruntime-ep-openvino": "99.0.0", "torch": "99.0.0"}
PACKAGES = sorted({*distributions.EVERY_DISTRIBUTION, "onnxruntime-ggml"} - {"onnxruntime-genai"})
GGML = frozenset({"onnxruntime-ggml"})


def future_of(package: str) -> Runtime:
    return Runtime(distribution=package, version=NUMBERS.get(package, FUTURE))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_list_of_releases_lets_a_newer_one_be_planned_that_the_index_has(package: str) -> None:
    runtime = read_runtime(f"{future_of(package)}+onnxruntime=={FUTURE}", allowed=GGML) if package in GGML else None
    asked = runtime or future_of(package)
    wanted = {plugins.core_of(asked), *plugins.packages_of(asked), asked}
    entry = next(entry for entry in providers.PROVIDERS if package in entry.packages)
    plan = plan_of(
        {"runtime": plugins.format_runtime(asked), "provider": entry.short, "allowed": GGML},
        known=Known(releases=[*wanted]),
    )
    assert ([point.reason.text for point in plan.refused], plan.cells) == ([], 1)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({}, {"opsets": {"": 40}, "ir_version": 20}),
        ({}, {"opsets": {"": 21, "ai.onnx.ml": 9}}),
        ({"policy": "max-performance"}, {}),
        ({"precision": "int4"}, {}),
        ({"opset": "max-of-runtime"}, {}),
        ({"call": "run", "optimization": "basic", "memory-limit-mb": "4096"}, {}),
    ],
    ids=["opset and IR", "ai.onnx.ml", "policies", "int4", "max-of-runtime", "calls and limits"],
)
def test_every_limit_of_releases_lets_a_newer_one_be_planned(
    options: Mapping[str, Any], facts: Mapping[str, Any]
) -> None:
    known = Known(releases=[future_of("onnxruntime")])
    plan = plan_of({"runtime": FUTURE, **options}, model=make_model(**facts), known=known)
    assert ([point.reason.text for point in plan.refused], plan.cells) == ([], 1)


@pytest.mark.parametrize("package", [web.DISTRIBUTION, frameworks.DISTRIBUTION])
def test_where_the_installer_decides_a_newer_release_is_believed(package: str) -> None:
    assert releases.unknown_sentence(future_of(package)) is None


def test_what_a_browser_loads_of_a_newer_release_has_webgpu() -> None:
    assert web.has_webgpu(FUTURE)
    assert web.pins_of(FUTURE) == {}


@pytest.mark.parametrize("package", ["onnxruntime", "onnxruntime-gpu", "onnxruntime-ep-webgpu", "torch"])
def test_a_newer_release_is_installed_by_its_number_on_any_newer_python(package: str) -> None:
    core = f"+onnxruntime.{FUTURE}" if plugins.plugin_of(future_of(package)) else ""
    runtime = Runtime(distribution=package, version=future_of(package).version + core)
    lowest, highest = requirements.find_supported_pythons(runtime) or (0, 0)
    assert (lowest >= 10, highest) == (True, 99)
    found = locks.pin_requirements(runtime, requirements.make_recipe(runtime))
    assert not found.is_whole
    assert found.lines[0].endswith(f"=={plugins.packages_of(runtime)[0].version}")


def test_what_is_learnt_of_a_newer_release_takes_the_place_of_what_is_assumed() -> None:
    seen = {FUTURE: Loads(opset=30, ir=15, ml=5)}
    assert opsets.refusal({"": 40}, 15, (), FUTURE) is None
    assert opsets.refusal({"": 30}, 15, (), FUTURE, seen) is None
    assert opsets.refusal({"": 31}, 15, (), FUTURE, seen) is not None


def test_the_range_of_a_plug_in_is_about_the_releases_that_it_was_written_for() -> None:
    newer = Runtime(distribution="onnxruntime-ggml", version=f"9.9.0+onnxruntime.{FUTURE}")
    assert distributions.refusal(newer, allowed=GGML) is None
    known = Runtime(distribution="onnxruntime-ggml", version=f"0.2.0+onnxruntime.{FUTURE}")
    assert "is not in it" in (distributions.refusal(known, allowed=GGML) or "")
    # an owner's own range is about all of them
    narrow = allowances.read_names("onnxruntime-ggml+onnxruntime==1.29.*")
    assert "is not in it" in (distributions.refusal(newer, allowed=narrow) or "")


@pytest.mark.parametrize("range_", [">=1.99", ">1.98", "==1.99.*", "~=1.99.0", ">=1.99,<2"])
def test_an_allowance_may_begin_after_every_known_release(range_: str) -> None:
    allowed = allowances.read_names(f"their-ep+onnxruntime{range_}")
    runtime = distributions.parse_runtime(f"their-ep==3.1+onnxruntime=={FUTURE}", allowed=allowed)
    assert plugins.core_of(runtime).version == FUTURE
    with pytest.raises(RuntimeProblem, match=r"name the one beside it, `their-ep==3\.1\+onnxruntime==…`"):
        distributions.parse_runtime("their-ep==3.1", allowed=allowed)
