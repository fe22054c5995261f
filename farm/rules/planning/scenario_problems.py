"""What a scenario cannot do with a model, a runtime or a provider: one sentence each, with the way out. Pure."""

from collections.abc import Callable, Iterator
from itertools import chain

from farm.contract.cells import CellSpec
from farm.rules.cells import scenarios
from farm.rules.cells.scenarios import Scenario
from farm.rules.planning.plans import ModelFacts
from farm.rules.runtimes import frameworks, providers, web

ShapeProblem = Callable[[str, int], str | None]


def first(spec: CellSpec, model: ModelFacts, *, shape_problem: ShapeProblem) -> str | None:
    """The first problem of the cell's scenario, None where it can be measured. `shape_problem`: of one size."""
    scenario = scenarios.of(spec)
    if scenario.kind != "fresh":
        return None
    return next(chain(_of_all(spec, scenario), _of_shapes(spec, scenario, model, shape_problem)), None)


def _of_all(spec: CellSpec, scenario: Scenario) -> Iterator[str]:
    if spec.workload.concurrency > 1:
        yield f"The scenario {scenario.kind} has streams of its own: leave out concurrency {spec.workload.concurrency}."
    if web.is_web(spec.runtime):
        yield f"{spec.runtime} is measured in the scenario single alone: leave {scenario.kind} out for browsers."


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
