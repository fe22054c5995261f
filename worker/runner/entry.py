"""The runner's process: it reads one order as JSON from stdin, and writes one answer as JSON to a private pipe.

It runs in the runtime's own environment, so it imports only the standard library, numpy and the runtime. These two are
imported late, so that their import is timed, and a broken build becomes an answer.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable

from worker.runner import extensions, faults, limits, order

REPLY_FD_VARIABLE = "ONNXFARM_REPLY_FD"

# an order has a few kilobytes
MAX_ORDER_BYTES = 1 << 20


def main(wrap_call: order.WrapCall = order.leave_unwrapped) -> None:
    """Read the order from stdin, run its pass, write the answer to the pipe, and end the process with status 0.

    `wrap_call` wraps each timed call, for benches of the runner itself.
    """
    entered_ns = time.monotonic_ns()
    # Linux wheels from 1.29 on start a telemetry thread, and numpy's BLAS starts threads that nobody uses
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # forbids unpickling, see farm.workshop.child.program_archive
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    answer = answer_order(sys.stdin.buffer.read(MAX_ORDER_BYTES), entered_ns=entered_ns, wrap_call=wrap_call)
    send_answer(answer)
    # end at once: freeing sessions takes tens of milliseconds, and crashes in some providers
    sys.stderr.flush()
    os._exit(0)


def answer_order(
    text: bytes, *, entered_ns: int, wrap_call: order.WrapCall = order.leave_unwrapped
) -> dict[str, object]:
    """Parse an order, run the pass that it names, and return the answer.

    The answer has a `reason` where the order cannot be read, where the pass raises Refusal, or where memory runs out
    under a memory limit of the order. Without a limit MemoryError is raised, and other exceptions of a pass are raised,
    too. `text` is the order as JSON, and `entered_ns` when the process began, by time.monotonic_ns().
    """
    try:
        parsed = order.Order.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        return {"reason": {"code": "internal", "text": f"the runner could not read its order: {error!r}"}}
    limit_mb = parsed.session.memory_limit_mb
    timer = order.PhaseTimer(launched_ns=parsed.launched_ns, entered_ns=entered_ns, wrap_call=wrap_call)
    try:
        return _run_pass(parsed, timer=timer)
    except faults.Refusal as refusal:
        explained = limits.add_limit_to_text(refusal, limit_mb)
        return {"reason": explained.as_reason(), "phases_ms": timer.phases_ms, **explained.facts}
    except MemoryError:
        if not limit_mb:
            raise
        explained = limits.add_limit_to_text(faults.Refusal("out_of_memory", "memory ran out"), limit_mb)
        return {"reason": explained.as_reason(), "phases_ms": timer.phases_ms}


def send_answer(answer: dict[str, object]) -> None:
    """Write the answer as JSON to the pipe that the environment names, or to stdout without one.

    Models and providers may print to stdout, but not to the pipe. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()
    descriptor = int(os.environ.get(REPLY_FD_VARIABLE, sys.stdout.fileno()))
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]


def _run_pass(parsed: order.Order, *, timer: order.PhaseTimer) -> dict[str, object]:
    with timer.phase("import"), faults.translate_errors("import"):
        import numpy

        runtime = importlib.import_module(parsed.module)

    # these modules import numpy and the runtime, so they are imported after the timed import
    from worker.runner.engines.table import find_engine_kind
    from worker.runner.scenarios import table as scenarios

    passes = find_engine_kind(parsed).passes
    if parsed.kind not in passes:
        raise faults.Refusal("internal", f"the runner knows no pass named {parsed.kind!r}")
    target = passes[parsed.kind]
    if parsed.kind == "trace":
        target = scenarios.TRACES.get(parsed.scenario["kind"], target)
    run: Callable[..., dict[str, object]] = extensions.import_builtin(target)
    limits.limit_memory(parsed.session.memory_limit_mb)
    answer = run(parsed, timer=timer)
    loaded = {"numpy": numpy.__version__, runtime.__name__: str(runtime.__version__)}
    return {**answer, "loaded": loaded, "phases_ms": timer.phases_ms}
