"""The judge's loop: plain onnxruntime, one thread, one process. Run by the interpreter of a runtime.

    python loop.py MODEL.onnx INPUTS.npz SECONDS

Prints one JSON object: processor time and wall-clock time of an inference, in microseconds, each the lower quartile of
parts of some five milliseconds, which leaves out most of what other programs do to the caches; and the share of a core
that it got. Imports nothing of onnxfarm.
"""

import json
import sys
import time

import numpy as np
import onnxruntime

PART_NS = 5_000_000


def main() -> None:
    model, inputs, seconds = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    with np.load(inputs) as feeds:
        for name in feeds.files:
            binding.bind_cpu_input(name, np.ascontiguousarray(feeds[name]))
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    often = calls_of_a_part(session, binding)
    measure(session, binding, often, ends_at=time.perf_counter() + float(seconds) / 2)
    parts = measure(session, binding, often, ends_at=time.perf_counter() + float(seconds))
    cpu, wall = zip(*parts, strict=True)
    quartiles = {"cpu_us": float(np.percentile(cpu, 25)), "wall_us": float(np.percentile(wall, 25))}
    print(json.dumps({**quartiles, "share": sum(cpu) / sum(wall), "runtime": onnxruntime.__version__}))


def calls_of_a_part(session: onnxruntime.InferenceSession, binding: onnxruntime.IOBinding) -> int:
    """How many inferences take about as long as a part."""
    began = time.perf_counter_ns()
    for _ in range(3):
        session.run_with_iobinding(binding)
    return max(1, round(PART_NS / max(1, (time.perf_counter_ns() - began) / 3)))


def measure(
    session: onnxruntime.InferenceSession, binding: onnxruntime.IOBinding, often: int, *, ends_at: float
) -> list[tuple[float, float]]:
    """Processor and wall-clock microseconds of an inference, for each part until then."""
    parts: list[tuple[float, float]] = []
    while not parts or time.perf_counter() < ends_at:
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        for _ in range(often):
            session.run_with_iobinding(binding)
        parts.append(((time.thread_time_ns() - cpu) / often / 1e3, (time.perf_counter_ns() - wall) / often / 1e3))
    return parts


main()
