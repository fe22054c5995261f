"""Which scenario is which module, imported where it is asked for."""

import importlib

from worker.runner import faults
from worker.runner.order import GENAI, Order
from worker.runner.scenarios.protocol import MakeScenario

# where the files of other people's packages lie
OUTSIDE = "worker.runner.outside"


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
    return _from_outside(kind)


def _from_outside(kind: str) -> MakeScenario:
    """The scenario of a package from outside, whose file the agent put beside the runner's own."""
    try:
        # a name that no matrix chose: it is one of an entry that the farm and the node have
        made: MakeScenario = importlib.import_module(f"{OUTSIDE}.{kind}").Outside
    except ModuleNotFoundError as missing:
        if missing.name not in (OUTSIDE, f"{OUTSIDE}.{kind}"):
            raise faults.Refusal("internal", f"the scenario {kind!r} cannot be imported here: {missing}") from missing
        text = (
            f"the runner knows no scenario named {kind!r}: install the package that brings it beside the node's agent"
        )
        raise faults.Refusal("not_supported", text) from missing
    return made
