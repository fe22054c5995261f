"""The sample pass: one process launch, which runs the order's scenario. The profiler is off meanwhile."""

import gc

from worker.runner import faults
from worker.runner.interleaving import Turns, pin_to_core
from worker.runner.order import Order, PhaseTimer
from worker.runner.scenarios import table
from worker.runner.scenarios.protocol import LaunchContext, Scenario


def run_sample(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Run the order's scenario, and return its figures under `sample`, with the fields of the contract's Sample.

    Where the order asks for it, a few inferences are traced afterwards, and their executed nodes are under `traced`.
    Raises Refusal where the cell does not load or run.
    """
    turns = Turns(order.turns) if order.turns else None
    answer = run_scenario(
        table.choose_scenario(order)(LaunchContext(order, timer, turns)), order, timer=timer, turns=turns
    )
    if not order.is_traced:
        return answer
    # the first session is closed, because the threads of two would disturb each other
    gc.unfreeze()
    gc.enable()
    gc.collect()
    # imported late: only ONNX Runtime has profiles, and not every environment has ONNX Runtime
    from worker.runner import round_trace

    return {**answer, "traced": round_trace.trace_after_windows(order, timer=timer, turns=turns)}


def run_sustained(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Run the scenario `sustained`, and return the `points` of its curve. Raises Refusal as `run_sample` does."""
    scenario = table.find_scenario("sustained")(LaunchContext(order, timer))
    return run_scenario(scenario, order, timer=timer, turns=None)


def run_scenario(scenario: Scenario, order: Order, *, timer: PhaseTimer, turns: Turns | None) -> dict[str, object]:
    """Open a scenario, step through it and close it, and return what `close` returns. Raises Refusal.

    Garbage collection is switched off, and stays off afterwards. Where `turns` is set, the process waits for its turn
    before it warms up, and the number of its turns is added to the sample.
    """
    scenario.open()
    with faults.translate_errors("run"):
        # a collection inside the timed loop would be counted as the model's time
        gc.collect()
        gc.freeze()
        gc.disable()
        if turns is not None:
            with timer.phase("others"):
                turns.wait_to_warm_up()
        # not earlier, because processes that take turns load their models at the same time
        pin_to_core(order.core)
        while scenario.step():
            pass
        if turns is not None:
            turns.wait_until_all_measured() if order.is_traced else turns.finish()
        answer = scenario.close()
    if turns is not None and isinstance(sample := answer.get("sample"), dict):
        sample["turns"] = turns.count
    return answer
