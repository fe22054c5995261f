"""Replaces the package `onnxruntime` in the environment of a FakeRuntime. It is copied there, and never imported here.

It computes nothing: a session keeps the processor busy for its steps, and its outputs have one value everywhere.
FakeRuntime writes `behaviour.json` beside it. It imports only the standard library and numpy.
"""

import enum
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "behaviour.json"), encoding="utf-8") as _file:
    _BEHAVIOUR: dict[str, Any] = json.load(_file)

__version__: str = _BEHAVIOUR["version"]

_DTYPES = {"float": "float32", "double": "float64", "float16": "float16", "bool": "bool"}

ExecutionMode = enum.Enum("ExecutionMode", ["ORT_SEQUENTIAL", "ORT_PARALLEL"])
GraphOptimizationLevel = enum.Enum(
    "GraphOptimizationLevel", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"]
)


def get_available_providers() -> list[str]:
    return list(_BEHAVIOUR["providers"])


class SessionOptions:
    """Accepts every setting. Only `enable_profiling`, `profile_file_prefix` and `optimized_model_filepath` matter."""

    enable_profiling = False
    profile_file_prefix = "profile"
    optimized_model_filepath = ""

    def __init__(self) -> None:
        self.config: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.config[key] = value


class NodeArg:
    """An input or output of the model."""

    def __init__(self, name: str, type: str, shape: list[int | str]) -> None:
        self.name, self.type, self.shape = name, type, shape


class OrtValue:
    """An array that a session takes or gives. `numpy` returns the array itself, `data_type` text like tensor(float)."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, array: NDArray[Any], device: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Wrap the array itself. The device is ignored, and data stay in the processor's memory."""
        return cls(array)

    def numpy(self) -> NDArray[Any]:
        return self._array

    def data_type(self) -> str:
        names = {dtype: name for name, dtype in _DTYPES.items()}
        return f"tensor({names.get(self._array.dtype.name, self._array.dtype.name)})"


class IOBinding:
    """Inputs by name, and the outputs of the last run. Binding an output does nothing."""

    def __init__(self) -> None:
        self.inputs: dict[str, OrtValue] = {}
        self.outputs: list[OrtValue] = []

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self.inputs[name] = value

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        pass  # outputs are made anew by each run

    def bind_output(self, name: str, device: str = "cpu") -> None:
        pass  # outputs are made anew by each run

    def clear_binding_outputs(self) -> None:
        self.outputs = []

    def get_outputs(self) -> list[OrtValue]:
        return self.outputs


class InferenceSession:
    """A session for any file. It runs on the requested providers that start, and always also on the CPU.

    Its inputs and outputs are those of the FakeRuntime, whatever the file has.
    """

    def __init__(
        self,
        path: str,
        options: SessionOptions,
        *,
        providers: Iterable[tuple[str, Mapping[str, str]]] = (),
        **_: object,
    ) -> None:
        self._options = options
        self._providers = {name: dict(given) for name, given in providers if name in _BEHAVIOUR["starts"]}
        self._providers.setdefault("CPUExecutionProvider", {})
        self._events: list[dict[str, object]] = []
        self._began_ns = time.perf_counter_ns()
        if options.optimized_model_filepath:
            shutil.copy(path, options.optimized_model_filepath)

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self._providers

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(**entry) for entry in _BEHAVIOUR["inputs"]]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(**entry) for entry in _BEHAVIOUR["outputs"]]

    def io_binding(self) -> IOBinding:
        return IOBinding()

    def run_with_iobinding(self, binding: IOBinding) -> None:
        """Run one inference: run every step, then make the outputs.

        A named dimension that no bound input has is 1.
        """
        began_us = self._now_us()
        for place, step in enumerate(_BEHAVIOUR["steps"]):
            self._run_step(step, place)
        if self._options.enable_profiling:
            self._events.append(
                {"cat": "Session", "name": "model_run", "ts": began_us, "dur": self._now_us() - began_us}
            )
        sizes = _read_sizes(binding)
        binding.outputs = []
        for argument in self.get_outputs():
            shape = [sizes.get(dim, 1) if isinstance(dim, str) else dim for dim in argument.shape]
            name = argument.type.removeprefix("tensor(").removesuffix(")")
            binding.outputs.append(OrtValue(np.full(shape, _BEHAVIOUR["value"], dtype=_DTYPES.get(name, name))))

    def end_profiling(self) -> str:
        """Write the profile, and return its path."""
        path = f"{self._options.profile_file_prefix}_fake.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return path

    def _run_step(self, step: Mapping[str, Any], place: int) -> None:
        """Keep the processor busy for the step's time, measured as this thread's own processor time."""
        began_us = self._now_us()
        ends_ns = time.thread_time_ns() + round(step["us"] * 1000)
        while time.thread_time_ns() < ends_ns:
            pass
        if not self._options.enable_profiling:
            return
        provider = step["provider"] if step["provider"] in self._providers else "CPUExecutionProvider"
        facts = {"op_name": step["op_type"], "provider": provider, "node_index": str(place)}
        spent = {"cat": "Node", "name": f"{step['name']}_kernel_time", "ts": began_us, "dur": self._now_us() - began_us}
        self._events.append({**spent, "tid": 1, "args": facts})

    def _now_us(self) -> int:
        return (time.perf_counter_ns() - self._began_ns) // 1000


def _read_sizes(binding: IOBinding) -> dict[str, int]:
    """Return the size of each named dimension of the bound inputs."""
    sizes: dict[str, int] = {}
    for entry in _BEHAVIOUR["inputs"]:
        if entry["name"] in binding.inputs:
            shape = binding.inputs[entry["name"]].numpy().shape
            sizes |= {dim: size for dim, size in zip(entry["shape"], shape, strict=True) if isinstance(dim, str)}
    return sizes
