"""What a scenario cannot do with a model, a runtime or a provider: one sentence each, with the way out. Pure."""

from collections.abc import Callable, Iterator
from itertools import chain
from math import ceil

from farm.contract.cells import CellSpec
from farm.rules.cells import scenarios
from farm.rules.cells.scenarios import Scenario
from farm.rules.planning import prompts
from farm.rules.planning.estimates import LOAD_AROUND, LOAD_ARRIVALS, load_launch_s
from farm.rules.planning.plans import ModelFacts
from farm.rules.runtimes import frameworks, providers, web
from farm.rules.wording.numbers import counted

# of two arms and eight rounds a block of ten minutes
LONGEST_LAUNCH_S = 600.0 / 16
ShapeProblem = Callable[[str, int], str | None]


def first(spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> str | None:
    """The first problem of the cell's scenario, None where it can be measured. `shape_problem`: of one size."""
    scenario = scenarios.of(spec)
    if scenario.kind == "generate":
        return next(chain(_of_all(spec, scenario), _of_generation(spec, model), prompts.problems(spec, model)), None)
    if scenario.kind not in ("fresh", "outside") and not scenario.is_open:
        return None
    found = (
        _of_all(spec, scenario),
        _of_shapes(spec, scenario, model, shape_problem),
        _of_load(spec, scenario, latency_ms=model.quickest_ms or model.latency_ms) if scenario.is_open else (),
    )
    return next(chain.from_iterable(found), None)


def _of_all(spec: CellSpec, scenario: Scenario) -> Iterator[str]:
    if spec.workload.concurrency > 1:
        yield f"The scenario {scenario.name} has streams of its own: leave out concurrency {spec.workload.concurrency}."
    if web.is_web(spec.runtime):
        yield f"{spec.runtime} is measured in the scenario single alone: leave {scenario.name} out for browsers."


def _of_load(spec: CellSpec, scenario: Scenario, *, latency_ms: float | None) -> Iterator[str]:
    if frameworks.is_framework(spec.runtime):
        yield f"{spec.runtime} runs one inference at a time: leave load out, or take a release of ONNX Runtime."
    rate = scenario.rate
    if rate is not None and (least := LOAD_ARRIVALS / LONGEST_LAUNCH_S) > rate:
        minutes = LOAD_ARRIVALS / rate / 60.0
        yield (
            f"At {rate:g} per s the {LOAD_ARRIVALS} arrivals of a p99 take {minutes:.3g} minutes in each launch: ask "
            f"for {ceil(least)} per s or more."
        )
    if rate is not None and latency_ms is not None and rate * latency_ms / 1000.0 >= scenario.streams:
        needed, streams = int(rate * latency_ms / 1000.0) + 1, counted(scenario.streams, "stream")
        yield (
            f"{rate:g} requests of {latency_ms:.3g} ms come in a second, too many for {streams}: ask for {needed} "
            "streams or a lower rate."
        )
    if scenario.bound_ms is not None and latency_ms is not None and scenario.bound_ms < latency_ms:
        yield (
            f"The bound of {scenario.bound_ms:g} ms is below the latency of one inference alone, {latency_ms:.3g} ms: "
            "write a larger one."
        )
    elif scenario.looks_for_a_rate and latency_ms is not None:
        yield from _of_search(scenario, latency_ms)


def _of_search(scenario: Scenario, latency_ms: float) -> Iterator[str]:
    if (launch_s := load_launch_s(scenario, latency_ms)) > LONGEST_LAUNCH_S:
        yield (
            f"{len(LOAD_AROUND)} rates of {LOAD_ARRIVALS} arrivals take about {launch_s:.0f} s in each launch of a "
            f"model of {latency_ms:.3g} ms, and a block at most {LONGEST_LAUNCH_S:.0f} s: write one rate, such as "
            f"`load:rate={ceil(LOAD_ARRIVALS / LONGEST_LAUNCH_S)}:bound={scenario.bound_ms:g}ms`, or more streams."
        )


def _of_generation(spec: CellSpec, model: ModelFacts) -> Iterator[str]:
    if model.generation_problem:
        yield model.generation_problem
    asked, context = scenarios.of(spec).generation, model.context
    # the last token is made and never fed
    if context is not None and (needed := asked.prompt + asked.new - 1) > context.tokens:
        yield (
            f"A prompt of {asked.prompt:,} and {asked.new:,} new tokens are {needed:,} that {model.name} reads, "
            f"and its context is {context.tokens:,}: {context.where}; ask for fewer."
        )
    if frameworks.is_framework(spec.runtime):
        yield f"{spec.runtime} is not measured generating yet: leave generate out for it."
    if spec.provider != providers.CPU.name:
        yield f"generate is measured on the CPU provider alone yet, not on {spec.provider}: leave that out."


def _of_shapes(spec: CellSpec, scenario: Scenario, model: ModelFacts, shape_problem: ShapeProblem) -> Iterator[str]:
    entry = providers.find(spec.provider)
    if scenario.shapes and entry is not None and entry.building is not None and entry.building.shapes:
        yield f"{entry.name} builds an engine for the shapes that it is given: leave the shapes of fresh out."
    if scenario.shapes and frameworks.is_framework(spec.runtime):
        yield f"{spec.runtime} knows no dimensions by name: leave the shapes of fresh out."
    # nothing is known of a model that was not looked into
    is_known = bool(model.dims) or model.batch is not None
    for name, sizes in scenario.shapes.items() if is_known else ():
        size = next(one for one in sizes if isinstance(one, int))
        problem = None if name == model.batch else shape_problem(name, size)
        if problem is not None:
            yield problem
