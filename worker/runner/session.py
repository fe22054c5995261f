"""The cell's session settings, as the agent wrote them, and the ONNX Runtime options that they become."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from worker.runner import faults

if TYPE_CHECKING:
    import onnxruntime


NO_POLICY = "none"
BOUND, RUN = "bound", "run"


@dataclass(frozen=True)
class SessionOrder:
    """Session settings of the cell; the names are those of the contract's SessionSettings."""

    threads: int = 1
    inter_op_threads: int = 1
    execution_mode: str = "sequential"
    optimization: str = "all"
    spinning: bool = True
    memory_pattern: bool = True
    arena: bool = True
    policy: str = NO_POLICY
    # the limit of the process's address space in MiB (see limits.py); 0: none
    memory_limit_mb: int = 0
    # the call that is timed: BOUND, on values that are bound once, or RUN, which takes arrays each time
    call: str = BOUND
    disabled_optimizers: tuple[str, ...] = ()
    config: dict[str, str] = field(default_factory=dict)


# ONNX Runtime's names of the contract's values, where they are not the same word
_LEVELS = {"disable": "ORT_DISABLE_ALL"}
_POLICIES = {"min-power": "MIN_OVERALL_POWER"}


class Tune(TypedDict, total=False):
    """Further attributes of SessionOptions, and its config entries."""

    log_severity_level: int
    enable_profiling: bool
    profile_file_prefix: str
    optimized_model_filepath: str
    config_entries: dict[str, str]


def make_session_options(settings: SessionOrder, *, tune: Tune) -> "onnxruntime.SessionOptions":
    """Make ONNX Runtime's SessionOptions, with the config entries of `tune`, which those of the cell replace.

    Raises Refusal for a config entry that it does not take, and for a policy where this release has none.
    """
    # imported late, because this module is needed to read the order, before the timed import of onnxruntime
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # errors only: warnings of every session would fill the log tail
    options.log_severity_level = 3
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = settings.inter_op_threads
    options.execution_mode = getattr(onnxruntime.ExecutionMode, f"ORT_{settings.execution_mode.upper()}")
    level = _LEVELS.get(settings.optimization, f"ORT_ENABLE_{settings.optimization.upper()}")
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.enable_mem_pattern = settings.memory_pattern
    options.enable_cpu_mem_arena = settings.arena
    _set_policy(options, settings.policy)
    with faults.translate_errors("session"):
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if settings.spinning else "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "1" if settings.spinning else "0")
        for key, value in {**tune.get("config_entries", {}), **settings.config}.items():
            options.add_session_config_entry(key, value)
    for attribute, setting in tune.items():
        if attribute != "config_entries":
            setattr(options, attribute, setting)
    return options


def _set_policy(options: "onnxruntime.SessionOptions", policy: str) -> None:
    """Let ONNX Runtime choose the devices by the policy. Raises Refusal where this release cannot."""
    if policy == NO_POLICY:
        return
    import onnxruntime

    if not hasattr(options, "set_provider_selection_policy"):
        raise faults.Refusal(
            "not_supported",
            f"ONNX Runtime {onnxruntime.__version__} does not choose a device by a policy: take 1.23.0 or newer, or "
            "name the provider",
        )
    name = _POLICIES.get(policy, policy.replace("-", "_").upper())
    options.set_provider_selection_policy(getattr(onnxruntime.OrtExecutionProviderDevicePolicy, name))
