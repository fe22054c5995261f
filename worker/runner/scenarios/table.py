"""Which scenario is which module, imported where it is asked for."""

from worker.runner import faults
from worker.runner.order import GENAI, Order
from worker.runner.scenarios.protocol import MakeScenario


def of(order: Order) -> MakeScenario:
    """What makes the scenario of an order. Raises Refusal."""
    kind = order.scenario["kind"]
    if order.program != GENAI:
        return named(kind)
    if kind != "generate":
        raise faults.Refusal("not_supported", f"onnxruntime-genai generates, and does nothing in {kind!r}")
    from worker.runner.scenarios.genai import GenerateByGenai

    return GenerateByGenai


def named(kind: str) -> MakeScenario:
    """What makes a scenario of this kind. Raises Refusal for one that this runner does not know."""
    if kind == "single":
        from worker.runner.scenarios.single import Single

        return Single
    if kind == "fresh":
        from worker.runner.scenarios.fresh import Fresh

        return Fresh
    if kind == "closed":
        from worker.runner.scenarios.closedloop import ClosedLoop

        return ClosedLoop
    if kind == "load":
        from worker.runner.scenarios.load import OpenLoop

        return OpenLoop
    if kind == "sustained":
        from worker.runner.scenarios.sustained import Sustained

        return Sustained
    if kind == "generate":
        from worker.runner.scenarios.generate import Generate

        return Generate
    raise faults.Refusal("internal", f"the runner knows no scenario named {kind!r}")
