"""A session as the cell asks for it, and the differences between ONNX Runtime 1.15 and 1.31."""

from dataclasses import dataclass, field
from typing import Any, TypedDict

import onnxruntime

from worker.runner import building, faults, plugins
from worker.runner.order import Order, PhaseTimer

CPU = "CPUExecutionProvider"

STRICT_KEY = "session.disable_cpu_ep_fallback"


@dataclass
class Engine:
    """One session, what was asked for and what it answered."""

    session: Any
    requested: list[str]
    active: list[str]
    device: str
    provider_options: dict[str, object] = field(default_factory=dict)
    # what a plug-in and its device say of themselves
    provider_facts: dict[str, str] = field(default_factory=dict)


class Tune(TypedDict, total=False):
    """Further attributes of SessionOptions, and its config entries."""

    log_severity_level: int
    enable_profiling: bool
    profile_file_prefix: str
    optimized_model_filepath: str
    config_entries: dict[str, str]


def open_engine(order: Order, *, timer: PhaseTimer, tune: Tune | None = None) -> Engine:
    """Create the session; raises Refusal when the provider is not in this build, not active, or the model not loaded.

    `tune` sets further attributes of SessionOptions, and `config_entries` (the trace pass switches its profiler on).
    """
    requested = requested_providers(order)
    available = list(onnxruntime.get_available_providers())
    if order.plugin is None and order.provider not in available:
        raise faults.Refusal(
            "provider_not_in_build",
            f"this build of ONNX Runtime {onnxruntime.__version__} has no {order.provider}; it has "
            f"{', '.join(available)}; choose one of these or another distribution",
            requested_providers=requested,
        )
    options = session_options(order, tune=tune or {})
    devices = plugins.devices_of(order, requested=requested) if order.plugin else []
    during = "session" if order.provider == CPU else "provider"
    with timer.phase("session"), faults.translated(during, requested_providers=requested):
        session = onnxruntime.InferenceSession(
            order.model, options, **_choice(order, requested=requested, options=options, devices=devices)
        )
    active = list(session.get_providers())
    _refuse_fallback(order, requested=requested, active=active)
    return Engine(
        session=session,
        requested=requested,
        active=active,
        device=order.memory or "cpu",
        provider_options=dict(session.get_provider_options().get(order.provider, {})),
        provider_facts=plugins.facts_of(devices, stands_in=order.stands_in),
    )


def _choice(order: Order, *, requested: list[str], options: Any, devices: list[Any]) -> dict[str, object]:
    """How a session is told its providers: by name, or on its options where a plug-in lists devices."""
    left_out = list(order.session.disabled_optimizers)
    chosen: dict[str, object] = {"disabled_optimizers": left_out} if left_out else {}
    if devices:
        options.add_provider_for_devices(devices, plugins.options_of(order))
        return chosen
    return {
        **chosen,
        "providers": [(name, provider_options(order) if name == order.provider else {}) for name in requested],
        # ONNX Runtime ≥ 1.23 raises instead of taking the CPU; older ones ignore it and are caught by the caller
        "enable_fallback": 0,
    }


def requested_providers(order: Order) -> list[str]:
    """The provider, then the CPU for operators it does not take; the provider alone in ONNX Runtime's strict mode."""
    is_alone = order.provider == CPU or order.session.config.get(STRICT_KEY) == "1"
    return [order.provider] if is_alone else [order.provider, CPU]


def provider_options(order: Order) -> dict[str, str]:
    """The order's options verbatim, and those of a provider that compiles: its cache folder and shapes."""
    return {**building.options_of(order), **order.provider_options}


def session_options(order: Order, *, tune: Tune) -> Any:
    """SessionOptions of the cell; raises Refusal on a config entry ONNX Runtime does not take."""
    wanted = order.session
    options = onnxruntime.SessionOptions()
    # errors only: warnings of every session would fill the log tail
    options.log_severity_level = 3
    options.intra_op_num_threads = wanted.threads
    options.inter_op_num_threads = wanted.inter_op_threads
    options.execution_mode = {
        "sequential": onnxruntime.ExecutionMode.ORT_SEQUENTIAL,
        "parallel": onnxruntime.ExecutionMode.ORT_PARALLEL,
    }[wanted.execution_mode]
    options.graph_optimization_level = {
        "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
        "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
        "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
        "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    }[wanted.optimization]
    options.enable_mem_pattern = wanted.memory_pattern
    options.enable_cpu_mem_arena = wanted.arena
    with faults.translated("session"):
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if wanted.spinning else "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "1" if wanted.spinning else "0")
        for key, value in {**tune.get("config_entries", {}), **wanted.config}.items():
            options.add_session_config_entry(key, value)
    for attribute, setting in tune.items():
        if attribute != "config_entries":
            setattr(options, attribute, setting)
    return options


def _refuse_fallback(order: Order, *, requested: list[str], active: list[str]) -> None:
    if order.provider in active:
        return
    raise faults.Refusal(
        "provider_not_active",
        f"{order.provider} was asked for and ONNX Runtime runs on {', '.join(active)} instead, so nothing was "
        "measured; see the log for why the provider did not start (missing driver, library or device)",
        requested_providers=requested,
        active_providers=active,
    )
