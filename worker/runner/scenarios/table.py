"""Finds the module of a scenario, and imports it when it is needed."""

from worker.runner import extensions, faults
from worker.runner.engines.table import find_engine_kind
from worker.runner.order import Order
from worker.runner.scenarios.protocol import MakeScenario

_OWN = {
    "single": "scenarios.single:Single",
    "fresh": "scenarios.fresh:Fresh",
    "closed": "scenarios.closedloop:ClosedLoop",
    "load": "scenarios.load:OpenLoop",
    "sustained": "scenarios.sustained:Sustained",
    "generate": "scenarios.generate:Generate",
}
# trace passes of scenarios whose launches are not single inferences
TRACES = {"generate": "generation_trace:run_trace"}


def choose_scenario(order: Order) -> MakeScenario:
    """Return the class of the order's scenario: the engine's own if the engine has scenarios, else the runner's.

    Raises Refusal where the engine has scenarios, but not this one, or where no such scenario is known.
    """
    kind, engine = order.scenario["kind"], find_engine_kind(order)
    if engine.scenarios is None:
        return find_scenario(kind)
    if kind not in engine.scenarios:
        text = f"{engine.module} has a loop of its own for {', '.join(engine.scenarios)}, and none for {kind!r}"
        raise faults.Refusal("not_supported", text)
    make_scenario: MakeScenario = extensions.import_builtin(engine.scenarios[kind])
    return make_scenario


def find_scenario(kind: str) -> MakeScenario:
    """Import the scenario of this kind, from the runner or from another package. Raises Refusal for an unknown kind."""
    make_scenario: MakeScenario = (
        extensions.import_builtin(_OWN[kind]) if kind in _OWN else extensions.import_extension("scenario", kind)
    )
    return make_scenario
