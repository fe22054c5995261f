"""ONNX Runtime as an engine: opens the cell's session, and binds its inputs and outputs to preallocated buffers."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import onnxruntime

from worker.runner import engine_cache, faults, plugins
from worker.runner.arrays import Arrays
from worker.runner.engines import protocol
from worker.runner.order import CPU, Order, PhaseTimer
from worker.runner.parity import Array
from worker.runner.session import BOUND, NO_POLICY, RUN, Tune, make_session_options

# outputs whose size depends on the data may have the same size in two runs, but rarely in this many
SHAPE_TRIES = 4
# the number of bfloat16 in TensorProto.DataType
_BFLOAT16 = 16
STRICT_KEY = "session.disable_cpu_ep_fallback"


@dataclass
class Engine:
    """A session, with the requested providers, the active ones, and their facts.

    `provider_facts`: facts of a plug-in and its device.
    """

    session: onnxruntime.InferenceSession
    requested: list[str]
    active: list[str]
    device: str
    provider_options: dict[str, object] = field(default_factory=dict)
    provider_facts: dict[str, str] = field(default_factory=dict)
    is_simulated: bool = False
    call: str = BOUND


def open_engine(order: Order, *, timer: PhaseTimer, tune: Tune | None = None) -> Engine:
    """Open the session, and time that. `tune` has further session options, such as the profiler's.

    Raises Refusal where the provider is not in this build or not active, where its plug-in has no device here, or where
    the model does not load or an option is refused. With a policy, another provider may be active.
    """
    requested = list_requested_providers(order)
    available = list(onnxruntime.get_available_providers())
    if order.plugin is None and order.provider not in available:
        raise faults.Refusal(
            "provider_not_in_build",
            f"this build of ONNX Runtime {onnxruntime.__version__} has no {order.provider}; it has "
            f"{', '.join(available)}; choose one of these or another distribution",
            requested_providers=requested,
        )
    options = make_session_options(order.session, tune=tune or {})
    devices = plugins.find_devices(order, requested=requested) if order.plugin else []
    during = "session" if order.provider == CPU else "provider"
    with timer.phase("session"), faults.translate_errors(during, requested_providers=requested):
        session = onnxruntime.InferenceSession(
            order.model, options, **_choose_providers(order, requested=requested, options=options, devices=devices)
        )
    active = list(session.get_providers())
    _refuse_fallback(order, requested=requested, active=active)
    return Engine(
        session=session,
        requested=requested,
        active=active,
        device=order.memory or "cpu",
        provider_options=dict(session.get_provider_options().get(order.provider, {})),
        provider_facts=plugins.describe_devices(devices, stands_in=order.stands_in),
        is_simulated=plugins.is_simulated(devices, is_simulated_on_cpu=order.is_simulated_on_cpu),
        call=order.session.call,
    )


def _choose_providers(
    order: Order, *, requested: list[str], options: onnxruntime.SessionOptions, devices: list[plugins.Device]
) -> dict[str, object]:
    """Make the arguments of the session for its providers. The devices of a plug-in are added to `options`."""
    left_out = list(order.session.disabled_optimizers)
    chosen: dict[str, object] = {"disabled_optimizers": left_out} if left_out else {}
    if order.session.policy != NO_POLICY:
        # ONNX Runtime chooses the provider only if none is named
        return {**chosen, "enable_fallback": 0}
    if devices:
        options.add_provider_for_devices(devices, plugins.list_library_options(order))
        # without fallback, a provider that does not start is an error
        return {**chosen, "enable_fallback": 0}
    return {
        **chosen,
        "providers": [(name, make_provider_options(order) if name == order.provider else {}) for name in requested],
        # ONNX Runtime ≥ 1.23 raises instead of using the CPU; for older releases, `_refuse_fallback` raises
        "enable_fallback": 0,
    }


def list_requested_providers(order: Order) -> list[str]:
    """List the cell's provider, then the CPU for other operators, unless ONNX Runtime's strict mode is on."""
    is_alone = order.provider == CPU or order.session.config.get(STRICT_KEY) == "1"
    return [order.provider] if is_alone else [order.provider, CPU]


def make_provider_options(order: Order) -> dict[str, str]:
    """Return the cell's options for its provider, and those of a compiling provider's engine cache that it lacks."""
    return {**engine_cache.make_cache_options(order), **order.provider_options}


def _refuse_fallback(order: Order, *, requested: list[str], active: list[str]) -> None:
    if order.provider in active or order.session.policy != NO_POLICY:
        return
    raise faults.Refusal(
        "provider_not_active",
        f"{order.provider} was asked for and ONNX Runtime runs on {', '.join(active)} instead, so nothing was "
        "measured; see the log for why the provider did not start (missing driver, library or device)",
        requested_providers=requested,
        active_providers=active,
    )


def choose_inputs(engine: Engine, arrays: Arrays) -> Arrays:
    """Select the arrays that the session takes, by name, and leave others out.

    Optional inputs may be missing. Raises Refusal where another input is missing.
    """
    nodes = engine.session.get_inputs()
    names = [node.name for node in nodes if node.name in arrays or not node.type.startswith("optional(")]
    missing = [name for name in names if name not in arrays]
    if missing:
        raise faults.Refusal(
            "inference_failed",
            f"the inputs hold no array named {', '.join(missing)}; they hold {', '.join(arrays) or 'nothing'}",
        )
    return {name: arrays[name] for name in names}


class Feed:
    """A session with its inputs, which are bound once, or are arrays if the call is `session.run` or one has strings.

    Call `run_first` once, then `settle` once, then `run` or the `timed_call` any number of times.
    """

    def __init__(self, engine: Engine, inputs: Arrays, *, device: str | None = None) -> None:
        self._engine, self._inputs = engine, inputs
        self._session = engine.session
        self._device = device or engine.device
        self._binding = engine.session.io_binding()
        self._outputs = [node.name for node in engine.session.get_outputs()]
        self._types = {node.name: node.type for node in engine.session.get_outputs()}
        # keeps alive what the binding points to
        self._held: list[object] = []
        # strings cannot be bound, but older farms ask for a bound call for them too
        is_plain = engine.call == RUN or any(array.dtype.kind == "U" for array in inputs.values())
        # the arguments of `session.run`; None: the inputs are bound
        self._plain = inputs if is_plain else None
        self._values: list[object] = []
        types = {node.name: node.type for node in engine.session.get_inputs()}
        for name, array in inputs.items() if self._plain is None else ():
            value = _make_value(array, types[name], self._device)
            self._held.append((value, array))
            self._binding.bind_ortvalue_input(name, value)
        # if the shapes of outputs change, their buffers are unbound before each run
        self._is_changing = False
        self._has_open_shapes = _has_open_shapes(engine)
        self._bind_free_outputs()

    def run_first(self) -> None:
        self.run()

    def settle(self) -> int:
        """Bind the buffers of the first run's outputs as preallocated outputs, and run again to see whether they fit.

        Where they do not fit, ONNX Runtime allocates the outputs in each run. Return the number of inferences that were
        begun: one, or several where output sizes may depend on the data.
        """
        if self._plain is not None:
            self.run()
            return 1
        for name, value in zip(self._outputs, self._binding.get_outputs(), strict=True):
            if self._types[name].startswith("tensor(") and "string" not in self._types[name]:
                self._held.append(value)
                self._binding.bind_ortvalue_output(name, value)
        begun = 0
        try:
            for _ in range(SHAPE_TRIES if self._has_open_shapes else 1):
                begun += 1
                self.run()
        except Exception:  # one of ONNX Runtime's own classes; any other error occurs again in the next run
            self._is_changing = True
            begun += 1
            self.run()
        return begun

    def run(self) -> None:
        if self._plain is not None:
            self._values = self._session.run(self._outputs, self._plain)
            return
        if self._is_changing:
            self._bind_free_outputs()
        self._session.run_with_iobinding(self._binding)

    def timed_call(self) -> Callable[[], object]:
        """Return the callable with the least overhead that runs one inference.

        Where inputs are bound, that is the C++ method behind `run_with_iobinding`. The Python part of the latter grew
        from 0.2 µs in 1.15 to 0.45 µs in 1.31, and would make a small model seem slower on newer releases.
        """
        if self._plain is not None:
            return functools.partial(self._session.run, self._outputs, self._plain)
        if self._is_changing:
            return self.run
        inner, binding = getattr(self._session, "_sess", None), getattr(self._binding, "_iobinding", None)
        if inner is not None and hasattr(inner, "run_with_iobinding") and binding is not None:
            return functools.partial(inner.run_with_iobinding, binding, None)
        return functools.partial(self._session.run_with_iobinding, self._binding)

    def other_call(self) -> tuple[str, Callable[[], object]] | None:
        """Return the name and the callable of the other way to run an inference.

        The name is `run` for a feed with bound inputs, and `bound` for a feed that calls `session.run`. This opens a
        second feed and runs it. None where the model cannot be called that way, and on devices, where copies would be
        timed.
        """
        is_run = self._plain is not None
        is_tensors = all(kind.startswith("tensor(") for kind in self._types.values())
        if self._device != "cpu" or not is_tensors:
            return None
        try:
            other = Feed(replace(self._engine, call=BOUND if is_run else RUN), self._inputs)
            other.run_first()
            other.settle()
        except Exception:  # one of ONNX Runtime's own classes, for instance for bfloat16, which numpy lacks
            return None
        # None also for strings, which cannot be bound
        return None if (other._plain is not None) == is_run else (other._engine.call, other.timed_call())

    def _bind_free_outputs(self) -> None:
        self._binding.clear_binding_outputs()
        for name in self._outputs:
            self._binding.bind_output(name, self._device)

    def outputs(self) -> dict[str, object]:
        """Copy the last run's outputs to the CPU, by name. In place of an output that numpy has no type for: its type.

        A bound output of bfloat16 becomes an array of float32, which is empty where the output lies on a device. Where
        the inputs are not bound, the outputs are those of the last `run`, and a `timed_call` does not change them.
        """
        if self._plain is not None:
            named_values = zip(self._outputs, self._values, strict=True)
            return {name: value if isinstance(value, np.ndarray) else self._types[name] for name, value in named_values}
        values = self._binding.get_outputs()
        return {name: _copy_to_cpu(value) for name, value in zip(self._outputs, values, strict=True)}


def _make_value(array: Array, kind: str, device: str) -> onnxruntime.OrtValue:
    """Make an OrtValue of the array on the device. Raises Refusal where this release cannot make one of bfloat16."""
    if kind != "tensor(bfloat16)":
        return onnxruntime.OrtValue.ortvalue_from_numpy(array, device, 0)
    make = getattr(onnxruntime.OrtValue, "ortvalue_from_numpy_with_onnx_type", None)
    if make is None:
        raise faults.Refusal(
            "inference_failed",
            f"ONNX Runtime {onnxruntime.__version__} has no OrtValue.ortvalue_from_numpy_with_onnx_type, which makes "
            "bfloat16 inputs; choose 1.20 or newer",
        )
    return make(array, _BFLOAT16)


def _has_open_shapes(engine: Engine) -> bool:
    """Say whether an output has a dimension that no input fixes, so that its size may depend on the data."""
    fixed = {dim for node in engine.session.get_inputs() for dim in node.shape if isinstance(dim, str)}
    dims = [dim for node in engine.session.get_outputs() for dim in (node.shape or [])]
    return any(not isinstance(dim, int) and dim not in fixed for dim in dims)


def _copy_to_cpu(value: onnxruntime.OrtValue) -> object:
    if value.data_type() == "tensor(bfloat16)":
        return _convert_bfloat16(value)
    try:
        array = value.numpy()
    except Exception:  # one of ONNX Runtime's own classes, for sequences, maps and the small float types
        return value.data_type()
    # the array may be a view of the bound buffer, which the next run overwrites
    return np.array(array, copy=True)


def _convert_bfloat16(value: onnxruntime.OrtValue) -> Array:
    """Copy a bfloat16 value as float32, whose upper half it is, because numpy has no bfloat16."""
    shape = value.shape()
    count = int(np.prod(shape))
    if count == 0 or value.device_name().lower() != "cpu":
        return np.zeros(shape if count == 0 else 0, dtype=np.float32)
    stored = np.ctypeslib.as_array(ctypes.cast(value.data_ptr(), ctypes.POINTER(ctypes.c_uint16)), (count,))
    return (stored.astype(np.uint32) << 16).view(np.float32).reshape(shape)


KIND = protocol.Kind(
    module="onnxruntime",
    open_engine=open_engine,
    choose_inputs=lambda engine, given: choose_inputs(cast(Engine, engine), given),
    feed=lambda engine, inputs, device=None: Feed(cast(Engine, engine), inputs, device=device),
    is_first_free=lambda engine: all(
        node.shape and not isinstance(node.shape[0], int) for node in cast(Engine, engine).session.get_inputs()
    ),
    dimensions=lambda engine: {node.name: list(node.shape) for node in cast(Engine, engine).session.get_inputs()},
    passes={
        **protocol.PASSES,
        "compilation": "compilation:run_compilation",
        "conformance": "conformance:run_conformance",
        "evaluation": "evaluation:run_evaluation",
        "trace": "trace:run_trace",
    },
    has_sessions=True,
    other_call=lambda feed: cast(Feed, feed).other_call(),
)
