"""The short-lived process that measures: one order as JSON on stdin, one answer as JSON on a private pipe.

Standard library, numpy and the runtime only: it runs inside a runtime's own environment. numpy and the runtime are
imported late, so that their import can be timed and so that a broken build is an answer, not a stack trace.
"""

import importlib
import json
import os
import sys
import time
from typing import Protocol

from worker.runner import extensions, faults, limits, order

REPLY_FD_VARIABLE = "ONNXFARM_REPLY_FD"

# one order is a few kilobytes: file names and settings
MAX_ORDER_BYTES = 1 << 20


class Pass(Protocol):
    """A pass: carries out an order, and returns what it measured. Raises Refusal where it cannot."""

    def __call__(
        self, todo: order.Order, /, *, timer: order.PhaseTimer, wrap_call: order.WrapCall | None = None
    ) -> dict[str, object]: ...


def main(wrap_call: order.WrapCall | None = None) -> None:
    """Read the order from stdin, run its pass, write the answer, and end the process with code 0.

    `wrap_call` lets a test put something around the timed call.
    """
    entered_ns = time.monotonic_ns()
    # Linux wheels from 1.29 start a telemetry thread; numpy's BLAS would start threads nobody uses
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # a framework's program is read without unpickling anything; see farm.workshop.child.program_archive
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    answer = answer_order(sys.stdin.buffer.read(MAX_ORDER_BYTES), entered_ns=entered_ns, wrap_call=wrap_call)
    send_answer(answer)
    # the answer is out: freeing sessions one by one takes tens of milliseconds, and crashes in some providers
    sys.stderr.flush()
    os._exit(0)


def answer_order(text: bytes, *, entered_ns: int, wrap_call: order.WrapCall | None = None) -> dict[str, object]:
    """Run the pass of one order, and return its measurements, or `{"reason": {"code", "text"}}` with known facts.

    Raises what a pass raises beside Refusal, and MemoryError where the order sets no memory limit.
    """
    try:
        todo = order.Order.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        return {"reason": {"code": "internal", "text": f"the runner could not read its order: {error!r}"}}
    timer = order.PhaseTimer(launched_ns=todo.launched_ns, entered_ns=entered_ns)
    try:
        return _run_pass(todo, timer=timer, wrap_call=wrap_call)
    except faults.Refusal as refusal:
        explained = limits.explain_with_limit(refusal, todo.session.memory_limit_mb)
        return {"reason": explained.as_reason(), "phases_ms": timer.phases_ms, **explained.facts}
    except MemoryError:
        if not todo.session.memory_limit_mb:
            raise
        explained = limits.explain_with_limit(
            faults.Refusal("out_of_memory", "memory ran out"), todo.session.memory_limit_mb
        )
        return {"reason": explained.as_reason(), "phases_ms": timer.phases_ms}


def send_answer(answer: dict[str, object]) -> None:
    """Write the answer as JSON to the pipe that the environment names, or to stdout when a person runs it by hand.

    Nothing that a model or a provider prints can garble the pipe. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()
    descriptor = int(os.environ.get(REPLY_FD_VARIABLE, sys.stdout.fileno()))
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]


def _run_pass(todo: order.Order, *, timer: order.PhaseTimer, wrap_call: order.WrapCall | None) -> dict[str, object]:
    with timer.phase("import"), faults.translate_errors("import"):
        import numpy

        runtime = importlib.import_module(todo.module)

    # the engines and passes import both at their top, so they come after the timed import
    from worker.runner.engines.table import find_engine_kind
    from worker.runner.scenarios import table as scenarios

    places = find_engine_kind(todo).passes
    if todo.kind not in places:
        raise faults.Refusal("internal", f"the runner knows no pass named {todo.kind!r}")
    place = scenarios.TRACES.get(todo.scenario["kind"], places["trace"]) if todo.kind == "trace" else places[todo.kind]
    run: Pass = extensions.import_own(place)
    limits.limit_memory(todo.session.memory_limit_mb)
    answer = run(todo, timer=timer, wrap_call=wrap_call)
    loaded = {"numpy": numpy.__version__, runtime.__name__: str(runtime.__version__)}
    return {**answer, "loaded": loaded, "phases_ms": timer.phases_ms}
