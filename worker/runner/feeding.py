"""Inputs from an .npz file, bound once to preallocated buffers."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from worker.runner import faults
from worker.runner.engine import Engine

Arrays = dict[str, np.ndarray[Any, Any]]


def load_arrays(path: str) -> Arrays:
    """Arrays of an .npz by name; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: np.ascontiguousarray(archive[name]) for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise faults.Refusal("artifact_unavailable", f"the arrays of {path} cannot be read: {error}") from error


def choose_inputs(engine: Engine, given: Arrays) -> Arrays:
    """The arrays the session asks for, by name. Raises Refusal naming what is missing."""
    wanted = [node.name for node in engine.session.get_inputs()]
    missing = [name for name in wanted if name not in given]
    if missing:
        raise faults.Refusal(
            "inference_failed",
            f"the inputs hold no array named {', '.join(missing)}; they hold {', '.join(given) or 'nothing'}",
        )
    return {name: given[name] for name in wanted}


class Feed:
    """A session with inputs and outputs bound: call `run` as often as wanted, nothing is allocated by us.

    The first run lets ONNX Runtime allocate the outputs, because their shapes may depend on the data; these very
    buffers are then bound as preallocated outputs.
    """

    def __init__(self, engine: Engine, inputs: Arrays, *, device: str | None = None) -> None:
        self._session = engine.session
        self._device = device or engine.device
        self._binding = engine.session.io_binding()
        self._outputs = [node.name for node in engine.session.get_outputs()]
        self._types = {node.name: node.type for node in engine.session.get_outputs()}
        self._held: list[Any] = []
        for name, array in inputs.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(array, self._device, 0)
            self._held.append((value, array))
            self._binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            self._binding.bind_output(name, self._device)

    def run_first(self) -> None:
        """The first inference; afterwards the outputs have buffers of their own."""
        self.run()
        for name, value in zip(self._outputs, self._binding.get_outputs(), strict=True):
            if self._types[name].startswith("tensor(") and "string" not in self._types[name]:
                self._held.append(value)
                self._binding.bind_ortvalue_output(name, value)

    def run(self) -> None:
        """One inference."""
        self._session.run_with_iobinding(self._binding)

    def timed_call(self) -> Callable[[], Any]:
        """The leanest callable for one inference: no attribute look-ups inside the timed loop.

        The C++ method below `run_with_iobinding`, whose Python part grew from 0.2 µs in 1.15 to 0.45 µs in 1.31: timed
        with it, a small model would seem to become slower between releases.
        """
        inner, binding = getattr(self._session, "_sess", None), getattr(self._binding, "_iobinding", None)
        if inner is not None and hasattr(inner, "run_with_iobinding") and binding is not None:
            return functools.partial(inner.run_with_iobinding, binding, None)
        return functools.partial(self._session.run_with_iobinding, self._binding)

    def outputs(self) -> dict[str, Any]:
        """Outputs of the last run, copied to the CPU."""
        values = self._binding.copy_outputs_to_cpu()
        return {name: _detached(value) for name, value in zip(self._outputs, values, strict=True)}


def _detached(value: Any) -> Any:
    # the array may be a view of the bound buffer, which the next run overwrites
    return np.array(value, copy=True) if isinstance(value, np.ndarray) else value
