"""Engines, which run the models of a runtime: an engine's entry answers every question about it.

The code that measures with an engine is in `worker/runner/engines`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from farm.contract.cells import NO_POLICY, CellSpec, Runtime
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import indexes
from farm.rules.runtimes.models import ModelFacts


class Launched(Protocol):
    """What an engine needs to know of a scenario."""

    @property
    def name(self) -> str: ...
    @property
    def takes_prompts(self) -> bool: ...
    # how many tokens the model holds at once
    @property
    def context_tokens(self) -> int: ...
    # how many tokens a launch draws at random
    @property
    def drawn_tokens(self) -> int: ...


@dataclass(frozen=True)
class Engine:
    """One engine. Its methods have defaults, which engines override.

    `describe` names a runtime for people, `installed_as` returns the release of the package that is installed for it,
    and `starts_processes` says whether it may start other processes.
    """

    # its name in the runner's table of engines
    name: str
    # the module whose import shows whether an environment works, and which version it has
    module: str
    # the name of its package
    distribution: str
    # its name for people
    title: str
    # for a third-party engine, the module whose class `Outside` runs it; nodes copy it to the runner's folder
    runner: str = ""
    # the seconds that a launch takes longer than ONNX Runtime's
    launch_s: float = 0.0
    # whether it has no ONNX Runtime beside it
    stands_alone: bool = True
    # whether it makes sessions, which have profiles and can keep what a provider compiled
    is_session: bool = False
    # whether it runs the framework's program in place of the .onnx
    runs_program: bool = False
    # whether it runs in browsers, so that no node installs it
    is_browser: bool = False
    # whether it can run several inferences at once
    has_streams: bool = True
    # whether inputs of other sizes can be made
    names_dimensions: bool = True
    # whether it can generate tokens one by one
    generates: bool = False

    @property
    def has_calls(self) -> bool:
        """Whether an inference is made by one of two calls: with bound tensors, or by `InferenceSession.run`."""
        return self.is_session and not self.is_browser

    def describe(self, runtime: Runtime) -> str:
        return f"{self.title} {runtime.version}"

    def installed_as(self, runtime: Runtime) -> Runtime:
        return runtime

    def install_hint(self, core: Runtime) -> str:
        """Return what to add to the message that the engine could not be installed beside this ONNX Runtime; or ""."""
        return ""

    def program(self, runtime: Runtime) -> str | None:
        """Return the word that tells the runner how to run a framework's program; None for an engine of .onnx files."""
        return None

    def starts_processes(self, runtime: Runtime) -> bool:
        return False

    def check_s(self, runtime: Runtime) -> float:
        """Return how many seconds a check takes longer than a launch."""
        return 0.0

    def scenario_launch_s(self, scenario: Launched) -> float:
        """Return how many seconds a launch of this scenario takes longer than one of ONNX Runtime."""
        return self.launch_s

    def refusals(self, spec: CellSpec, model: ModelFacts, scenario: Launched, *, named: str) -> Iterator[Reason]:
        """Yield the reasons why the cell cannot run on this engine, each with what to do; by default none.

        `named` is the cell's runtime as users write it.
        """
        yield from ()


@dataclass(frozen=True)
class OnnxRuntime(Engine):
    """ONNX Runtime in any build. Launch times of the other engines are relative to its session's."""

    stands_alone: bool = False
    is_session: bool = True
    generates: bool = True

    def describe(self, runtime: Runtime) -> str:
        suffix = "" if runtime.distribution == "onnxruntime" else f" ({runtime.distribution})"
        return f"{self.title} {indexes.describe_version(runtime.version)}{suffix}"


def ignored_settings(spec: CellSpec, *, has_streams: bool) -> list[str]:
    """Name the settings of a cell that differ from their defaults and that an engine without sessions would ignore.

    `concurrency` is among them only for an engine without streams. Numbers of threads and options of providers are not
    looked at.
    """
    session, recipe = spec.session, spec.recipe
    asked = {
        f"precision {recipe.precision}": recipe.precision != "fp32",
        f"opset {recipe.opset}": recipe.opset != "as-is",
        "concurrency": not has_streams and spec.workload.concurrency != 1,
        "execution_mode: parallel": session.execution_mode == "parallel",
        f"optimization: {session.optimization}": session.optimization != "all",
        "spinning: false": not session.spinning,
        "memory_pattern: false": not session.memory_pattern,
        "arena: false": not session.arena,
        "disabled_optimizers": bool(session.disabled_optimizers),
        "config": bool(session.config),
        f"policy: {session.policy}": session.policy != NO_POLICY,
    }
    return [name for name, is_asked in asked.items() if is_asked]


def unsupported(text: str) -> Reason:
    return Reason(code=ReasonCode.NOT_SUPPORTED, text=text)


def not_loaded(text: str) -> Reason:
    return Reason(code=ReasonCode.MODEL_NOT_LOADED, text=text)
