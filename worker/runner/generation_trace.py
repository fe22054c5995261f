"""The trace pass of a cell that generates: profiles the prompt, and steps along the sequence after it."""

import time

import numpy as np

from worker.runner import faults, profile, trace
from worker.runner.order import Call, Order, PhaseTimer
from worker.runner.scenarios import prompts
from worker.runner.scenarios.decoder_ports import Steps, describe_decoder

# steps that are traced after each prompt, evenly along the sequence
STEPS = 8
# a pass is a prompt with its steps: the first WARMUP_PASSES do not count, and at least MIN_PASSES do
WARMUP_PASSES = 2
MIN_PASSES = 5


def run_trace(order: Order, *, timer: PhaseTimer) -> dict[str, object]:
    """Profile the prompt and some steps, and return their executed nodes with median self times.

    Those of a step are under `executed`, and those of the prompt under `prompt`. Raises Refusal where the model is no
    decoder, or does not load or run.
    """
    engine, saved = trace.open_profiled(order, timer=timer)
    facts: dict[str, object] = {"requested_providers": engine.requested, "active_providers": engine.active}
    with faults.translate_errors("run", **facts), timer.phase("runs"):
        # the bindings hold only the addresses of the buffers of `steps`, which has to stay alive
        decoder = describe_decoder(engine.session)
        prompt_rows = prompts.load_prompts(order, vocabulary=decoder.vocabulary)
        steps = Steps(engine.session, decoder, prompt=prompt_rows, new=int(order.scenario["new"]))
        calls = _pick_calls(steps.calls())
        passes = _run_profiled(calls, order)
        path = engine.session.end_profiling()
    with timer.phase("parse"):
        events = trace.read_profile(path)
        begun, count = WARMUP_PASSES * len(calls), passes * len(calls)
        prompt_runs = set(range(0, count, len(calls)))
        step, prompt = (
            profile.summarise(events, skip_runs=begun, cold_runs=others)
            for others in (prompt_runs, set(range(count)) - prompt_runs)
        )
    tokens = int(order.scenario["prompt"])
    apart = {key: value for key, value in trace.summarise_profile(prompt).items() if key != "has_overflowed"}
    return {
        **facts,
        **trace.summarise_profile(step),
        **trace.describe_for_mapping(engine, path, saved),
        "prompt": {"tokens": tokens, **apart},
    }


def _pick_calls(calls: list[Call]) -> list[Call]:
    """Pick the prompt and some of the steps. Each step is bound separately and can run after any other."""
    new = len(calls)
    places = np.unique(np.linspace(1, new - 1, min(STEPS, new - 1)).astype(int)).tolist()
    return [calls[0], *(calls[place] for place in places)]


def _run_profiled(calls: list[Call], order: Order) -> int:
    """Run the calls for several passes, and return how many passes there were."""
    ends_at, done = None, 0
    max_passes = WARMUP_PASSES + max(MIN_PASSES, order.trace_runs)
    while done < max_passes:
        if done == WARMUP_PASSES:
            ends_at = time.perf_counter() + order.trace_s
        if ends_at is not None and done >= WARMUP_PASSES + MIN_PASSES and time.perf_counter() >= ends_at:
            break
        for call in calls:
            call()
        done += 1
    return done
