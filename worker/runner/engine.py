"""A session as the cell asks for it, and the differences between ONNX Runtime 1.15 and 1.31."""

from dataclasses import dataclass, field

import onnxruntime

from worker.runner import engine_cache, faults, plugins
from worker.runner.order import CPU, Order, PhaseTimer
from worker.runner.session import NO_POLICY, Tune, session_options

STRICT_KEY = "session.disable_cpu_ep_fallback"


@dataclass
class Engine:
    """One session, what was asked for and what it answered."""

    session: onnxruntime.InferenceSession
    requested: list[str]
    active: list[str]
    device: str
    provider_options: dict[str, object] = field(default_factory=dict)
    # what a plug-in and its device say of themselves
    provider_facts: dict[str, str] = field(default_factory=dict)
    is_simulated: bool = False


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
    options = session_options(order.session, tune=tune or {})
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
        is_simulated=plugins.is_simulated(devices, is_simulated_on_cpu=order.is_simulated_on_cpu),
    )


def _choice(
    order: Order, *, requested: list[str], options: onnxruntime.SessionOptions, devices: list[plugins.Device]
) -> dict[str, object]:
    """How a session is told its providers: by name, or on its options where a plug-in lists devices."""
    left_out = list(order.session.disabled_optimizers)
    chosen: dict[str, object] = {"disabled_optimizers": left_out} if left_out else {}
    if order.session.policy != NO_POLICY:
        # ONNX Runtime chooses; a provider that is named would be taken in its place
        return {**chosen, "enable_fallback": 0}
    if devices:
        options.add_provider_for_devices(devices, plugins.options_of(order))
        # a provider that does not start says why, instead of the CPU's running in its place
        return {**chosen, "enable_fallback": 0}
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
    return {**engine_cache.options_of(order), **order.provider_options}


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
