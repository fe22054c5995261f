"""Which scenario is which module, imported where it is asked for."""

from worker.runner import extensions, faults
from worker.runner.engines.table import kind_of
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
# the trace pass of those whose launches are no single inferences
TRACES = {"generate": "generation_trace:run_trace"}


def scenario_of(order: Order) -> MakeScenario:
    """What makes the scenario of an order, by its engine where that has a loop of its own. Raises Refusal."""
    kind, engine = order.scenario["kind"], kind_of(order)
    if engine.scenarios is None:
        return find_scenario(kind)
    if kind not in engine.scenarios:
        text = f"{engine.module} has a loop of its own for {', '.join(engine.scenarios)}, and none for {kind!r}"
        raise faults.Refusal("not_supported", text)
    made: MakeScenario = extensions.import_own(engine.scenarios[kind])
    return made


def find_scenario(kind: str) -> MakeScenario:
    made: MakeScenario = (
        extensions.import_own(_OWN[kind]) if kind in _OWN else extensions.import_outside("scenario", kind)
    )
    return made
