"""Runs a model once, for a limited time, to see whether it accepts its inputs. Runs in the child only."""

import json
import threading
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from farm.workshop import arrays
from farm.workshop.problems import first_line

TRY_S = 15.0
# the largest profile that is read; it has room for some hundred thousand nodes
_MAX_PROFILE_BYTES = 64 << 20


class NoSessionError(Exception):
    """This runtime cannot load the model."""


class TookTooLongError(Exception):
    """The run was ended at its time limit, so nobody knows whether the model accepts the inputs."""


def load_session(
    model: Path | bytes,
    *,
    level: onnxruntime.GraphOptimizationLevel = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    profile: Path | None = None,
) -> onnxruntime.InferenceSession:
    """Open a session on this CPU with one thread. Raises NoSessionError if the model is not loaded.

    `profile` is the path prefix of a profile that the session writes; None writes no profile.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    options.log_severity_level = 4
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    try:
        source = model if isinstance(model, bytes) else str(model)
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise NoSessionError(first_line(error)) from error


def find_run_error(session: onnxruntime.InferenceSession, feed: arrays.Arrays, *, limit_s: float = TRY_S) -> str | None:
    """Run the model once, for at most `limit_s`, and return the first line of its error; None if it ran.

    Raises TookTooLongError at the time limit.
    """
    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    timer = threading.Timer(limit_s, lambda: setattr(options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        run_session(session, feed, options)
    except Exception as error:  # onnxruntime raises many undocumented kinds of errors
        if options.terminate:
            raise TookTooLongError from error
        return first_line(error)
    finally:
        timer.cancel()
    return None


def run_session(
    session: onnxruntime.InferenceSession, feed: arrays.Arrays, options: onnxruntime.RunOptions | None = None
) -> list[Any]:
    """Run the model and return its outputs in order.

    The array of a bfloat16 input holds its bits as uint16. A bfloat16 output is replaced by the name of its type.
    """
    bfloat16_names = {node.name for node in session.get_inputs() if node.type == "tensor(bfloat16)"}
    if not bfloat16_names:
        return list(session.run(None, feed, options))
    make = onnxruntime.OrtValue
    values = {
        name: make.ortvalue_from_numpy_with_onnx_type(array, onnx.TensorProto.BFLOAT16)
        if name in bfloat16_names
        else make.ortvalue_from_numpy(array)
        for name, array in feed.items()
    }
    names = [node.name for node in session.get_outputs()]
    return [
        value.data_type() if "bfloat16" in value.data_type() else value.numpy()
        for value in session.run_with_ort_values(names, values, options)
    ]


def count_output_bytes(
    session: onnxruntime.InferenceSession, feeds: list[arrays.Arrays], *, limit_s: float = TRY_S
) -> list[int]:
    """Count the bytes that all nodes together compute for each feed, as a measure of work that needs no clock.

    `session` must write a profile, which is ended, read and deleted. Return an empty list if a run fails or the profile
    is too large. Raises TookTooLongError, OSError or ValueError, and LookupError or TypeError for a profile in another
    form.
    """
    try:
        has_run = all(find_run_error(session, feed, limit_s=limit_s) is None for feed in feeds)
    finally:
        profile = Path(session.end_profiling())
        content = profile.read_bytes() if profile.stat().st_size <= _MAX_PROFILE_BYTES else b""
        profile.unlink()
    if not has_run or not content:
        return []
    events = [event for event in json.loads(content) if isinstance(event, dict)]
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e.get("name") == "model_run")
    kernels = [e for e in events if e.get("cat") == "Node" and str(e.get("name", "")).endswith("_kernel_time")]
    # each node counts one byte more, since a node with hardly any output is work too
    sizes = [(e.get("ts", -1), 1 + int(e.get("args", {}).get("output_size") or 0)) for e in kernels]
    return [sum(size for at, size in sizes if start <= at <= end) for start, end in spans[-len(feeds) :]]
