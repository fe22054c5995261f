"""Makes reference outputs with the CPU provider and every optimisation off. Runs in the child only."""

from pathlib import Path

import numpy as np
import onnxruntime

from farm.workshop import arrays
from farm.workshop.child import payloads, trials
from farm.workshop.problems import Problem, answer_problems, first_line

MADE_BY = f"onnxruntime=={onnxruntime.__version__}"


@answer_problems
def make_reference(payload: payloads.GivenInputs) -> dict[str, object]:
    """Run the payload's model on the arrays in `inputs`, write its outputs to `out`, and return how they were made.

    Outputs that are not tensors, or are bfloat16, are named in `skipped`. Returns a problem with the code bad_arrays,
    not_loaded or inference_failed.
    """
    path = Path(payload["folder"], payload["main"])
    outputs, skipped = run_reference(path, arrays.read_npz(Path(payload["inputs"])))
    arrays.write_npz(Path(payload["out"]), outputs)
    return {"made_by": f"{MADE_BY} CPU, no optimisations", "outputs": list(outputs), "skipped": skipped}


def run_reference(model: Path | bytes, inputs: arrays.Arrays) -> tuple[arrays.Arrays, list[str]]:
    """Run the model once and return its outputs by name, and the names of those that are left out.

    Left out are outputs that are not tensors, or are bfloat16. Strings come as fixed-width text. Raises Problem
    not_loaded or inference_failed.
    """
    session = load_session(model)
    names = [output.name for output in session.get_outputs()]
    try:
        values = trials.run_session(session, inputs)
    except Exception as error:  # onnxruntime raises many undocumented kinds of errors
        text = f"The model fails on the CPU with these inputs ({first_line(error)}): upload inputs that it takes."
        raise Problem("inference_failed", text) from error
    tensors = {
        # strings come as objects, which no .npz can hold without a pickle
        name: value.astype(str) if value.dtype.kind == "O" else value
        for name, value in zip(names, values, strict=True)
        if isinstance(value, np.ndarray)
    }
    return tensors, [name for name in names if name not in tensors]


def load_session(model: Path | bytes) -> onnxruntime.InferenceSession:
    """Open a session on the CPU provider without optimisations. Raises Problem not_loaded."""
    try:
        # the session has one thread, which always adds numbers in the same order
        return trials.load_session(model, level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    except trials.NoSessionError as error:
        raise Problem("not_loaded", f"{MADE_BY} cannot load the model for a reference ({error}).") from error
