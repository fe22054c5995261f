"""The runner's order, as the agent wrote it; only this file knows its keys.

History of ORDER_VERSION
1  first version: check, trace, sample.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypedDict

from worker.runner.session import SessionOrder

ORDER_VERSION = 1
CPU = "CPUExecutionProvider"
ONNXRUNTIME = "onnxruntime"

Call = Callable[[], object]
WrapCall = Callable[[Call], Call]


def leave_unwrapped(call: Call) -> Call:
    return call


@dataclass(frozen=True)
class BudgetOrder:
    """How long to measure, in seconds and runs; `windows_agreeing` 1 means a single window."""

    # the minimum and the maximum of the warm-up
    warmup_s: float = 0.2
    warmup_cap_s: float = 5.0
    # a window has at least this length and this number of runs, or `window_runs_slow` if its first run is slow
    window_s: float = 0.5
    window_runs: int = 3
    window_runs_slow: int = 3
    # how many windows have to agree
    windows_agreeing: int = 1
    # the minimum and the maximum of all windows together
    at_least_s: float = 0.0
    at_most_s: float = 30.0


@dataclass(frozen=True)
class EvaluationPart:
    """Labelled data and how outputs are judged; the names are those of the contract's EvaluationRecipe."""

    # the path of the data (.npz)
    data: str
    metric: str = "top1"
    # the place of the metric's judge in the runner (MODULE:NAME), or a name of another package's
    judge: str = "judges.classes:TOP1"
    # samples in a batch, where the model does not fix it
    at_once: int = 64
    # the user's judge in place of the metric's: the path of its file, its name for the user, and the function in it
    own: tuple[str, str, str] | None = None
    # the name of the output, or several joined by commas; None: the first one
    output: str | None = None
    # the step that is applied to the output before it is judged, see `judges.output_steps`
    apply: str | None = None
    threshold: float = 0.5
    # the time limit of all batches
    most_s: float = 60.0


@dataclass(frozen=True)
class BuildingPart:
    """A compiling provider's cache: the option that names its folder, the folder, and the options for input shapes."""

    cache: str
    folder: str
    shapes: tuple[str, ...] = ()


class Tolerance(TypedDict):
    """How close an output has to be; see `parity.compare_output`."""

    atol: float
    rtol: float
    is_absolute: bool


class Pair(TypedDict):
    """Two arms whose outputs are compared: their numbers, the files of their outputs, and the tolerance."""

    one: int
    other: int
    one_path: str
    other_path: str
    atol: float
    rtol: float
    # atol and rtol of single outputs, by name
    own: dict[str, tuple[float, float]]
    # whether outputs that have different names are compared too, in their order
    is_by_order: bool


@dataclass(frozen=True)
class Order:
    """One pass of one cell. Paths are absolute; `batch` is None where the first dimension is no batch."""

    kind: str
    model: str
    inputs: str
    provider: str
    provider_options: dict[str, str] = field(default_factory=dict)
    # `module:function` that gives the path of the library with the provider; None: it is in the build
    plugin: str | None = None
    # the engine, by the name of its entry, and its module
    engine: str = ONNXRUNTIME
    module: str = ONNXRUNTIME
    # how a framework runs the program in `model`: `eager` or `compile`; None: the engine is no framework
    program: str | None = None
    # OrtValue's name for the provider's own memory; None: the provider uses host memory
    memory: str | None = None
    # the environment variable that lets the processor stand in for the provider's device
    stands_in: str | None = None
    # whether a device of kind CPU is a simulator of the provider's own
    is_simulated_on_cpu: bool = False
    building: BuildingPart | None = None
    session: SessionOrder = field(default_factory=SessionOrder)
    reference: str | None = None
    # the user's token ids (.npz): `prompt` [row, token], and `text` where one is scored
    prompts: str | None = None
    atol: float = 1e-5
    rtol: float = 1e-4
    # whether the user gave both; they are not scaled by the reference then
    is_absolute: bool = False
    # atol and rtol of single outputs, by name
    tolerances: dict[str, list[float]] = field(default_factory=dict)
    batch: int | None = None
    concurrency: int = 1
    # the scenario of a sample, and its options
    scenario: dict[str, Any] = field(default_factory=lambda: {"kind": "single"})
    budget: BudgetOrder = BudgetOrder()
    # a sample with a smaller ratio of thread CPU time to wall time is disturbed; None: the ratio is not judged
    gate_cpu_share: float | None = None
    # a sample may trace inferences after its windows: at most `trace_runs`, for `trace_s`
    is_traced: bool = False
    # the folder with the pipes of a sample that takes turns, and the core to which it is bound
    turns: str | None = None
    core: int | None = None
    # the file that a pass writes: outputs (check, look), token ids (tokens) or the model (compilation); None: none
    keep: str | None = None
    # the engines pass: the paths of two arms' outputs, and the tolerance
    pairs: tuple[Pair, ...] = ()
    evaluation: EvaluationPart | None = None
    trace_runs: int = 20
    trace_s: float = 1.0
    # the sustained pass: its whole length, and that of each point of its curve
    sustained_s: float = 0.0
    point_s: float = 60.0
    work_dir: str = "."
    launched_ns: int | None = None

    def find_tolerance(self, name: str) -> Tolerance:
        """Return the tolerance of an output by its name: its own if it has one, which is absolute, or the order's."""
        atol, rtol = self.tolerances.get(name, (self.atol, self.rtol))
        return {"atol": atol, "rtol": rtol, "is_absolute": self.is_absolute or name in self.tolerances}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Order":
        """Build an order from decoded JSON.

        Raises ValueError for another version, KeyError for a missing one, and TypeError for missing or unknown keys.
        """
        fields = dict(value)
        version = fields.pop("version")
        if version != ORDER_VERSION:
            raise ValueError(f"order version {version!r}, this runner speaks {ORDER_VERSION}")
        session = fields.pop("session", {})
        session["disabled_optimizers"] = tuple(session.get("disabled_optimizers", ()))
        budget = BudgetOrder(**fields.pop("budget", {}))
        evaluation = fields.pop("evaluation", None)
        part = EvaluationPart(**evaluation) if evaluation else None
        if building := fields.pop("building", None):
            fields["building"] = BuildingPart(**{**building, "shapes": tuple(building.get("shapes", ()))})
        return cls(session=SessionOrder(**session), budget=budget, evaluation=part, **fields)


# phases that the farm judges separately, by their processor time where the machine was busy
JUDGED_PHASES = ("session", "first")


class PhaseTimer:
    """Times the phases of the process. `phases_ms` has the wall-clock time of each phase in ms.

    For JUDGED_PHASES it has the processor time too, as `session_cpu`. `launched_ns` is when the agent started the
    process, and `entered_ns` when its first line ran, both by time.monotonic_ns(); without `launched_ns` the phase
    `start` is left out. Scenarios pass each call that they time through `wrap_call`.
    """

    def __init__(
        self, *, launched_ns: int | None = None, entered_ns: int = 0, wrap_call: WrapCall = leave_unwrapped
    ) -> None:
        self.wrap_call = wrap_call
        self.phases_ms: dict[str, float] = {}
        if launched_ns is not None:
            # this includes fork, sandbox and interpreter; both clocks are this machine's CLOCK_MONOTONIC
            self.phases_ms["start"] = max(0.0, (entered_ns - launched_ns) / 1e6)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the body as the phase `name`; the times of a phase that is entered twice add up."""
        began, cpu_began = time.perf_counter_ns(), time.process_time_ns()
        try:
            yield
        finally:
            self._add(name, time.perf_counter_ns() - began)
            if name in JUDGED_PHASES:
                self._add(f"{name}_cpu", time.process_time_ns() - cpu_began)

    def _add(self, name: str, spent_ns: int) -> None:
        self.phases_ms[name] = self.phases_ms.get(name, 0.0) + spent_ns / 1e6
