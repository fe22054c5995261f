"""The keys of a runner's order, which `worker.runner.order` reads in another environment, and the budgets.

See docs/samples.md, "Budgets".
"""

from typing import TypedDict

from farm.contract.cells import Budget


class BudgetPart(TypedDict, total=False):
    """How long to measure, in seconds and runs; `worker.runner.order.BudgetOrder` explains the keys."""

    warmup_s: float
    warmup_cap_s: float
    window_s: float
    window_runs: int
    window_runs_slow: int
    windows_agreeing: int
    at_least_s: float
    at_most_s: float


class BuildingPart(TypedDict):
    """The cache of a provider that compiles: its option and folder, and the provider's options for shapes."""

    cache: str
    folder: str
    shapes: list[str]


class EvaluationPart(TypedDict, total=False):
    """Labelled data, how outputs are judged on them, and the time limit `most_s`."""

    data: str
    metric: str
    judge: str
    at_once: int
    own: tuple[str, str, str]
    output: str | None
    apply: str | None
    threshold: float
    most_s: float


class Pair(TypedDict):
    """Two arms whose outputs are compared; `worker.runner.order.Pair` explains the keys."""

    one: int
    other: int
    one_path: str
    other_path: str
    atol: float
    rtol: float
    own: dict[str, tuple[float, float]]
    is_by_order: bool


class RunnerOrder(TypedDict, total=False):
    """The order of one pass of one cell. `worker.runner.order.Order` has the defaults of keys that are left out."""

    version: int
    kind: str
    model: str
    inputs: str
    provider: str
    provider_options: dict[str, str]
    plugin: str | None
    engine: str
    module: str
    program: str | None
    memory: str | None
    stands_in: str | None
    is_simulated_on_cpu: bool
    building: BuildingPart
    session: dict[str, object]
    reference: str | None
    prompts: str | None
    atol: float
    is_absolute: bool
    rtol: float
    tolerances: dict[str, list[float]]
    batch: int | None
    concurrency: int
    scenario: dict[str, object]
    budget: BudgetPart
    gate_cpu_share: float | None
    is_traced: bool
    turns: str
    core: int | None
    keep: str
    pairs: list[Pair]
    evaluation: EvaluationPart
    trace_runs: int
    trace_s: float
    sustained_s: float
    point_s: float
    work_dir: str
    launched_ns: int


# the maximum of runs and seconds of a trace
TRACE_RUNS = 30
TRACE_S = 0.5
# the seconds of each trace after an arm's first, which explains a change
FURTHER_TRACE_S = 0.25
# the maxima of the trace after the windows of a launch, where rounds are traced
ROUND_TRACE_S = 0.25
ROUND_TRACE_RUNS = 100
ROUND_TRACE_EVENTS = 20_000

_SINGLE_WINDOW: BudgetPart = {"warmup_s": 0.15, "window_runs": 3, "windows_agreeing": 1}
_BUDGETS: dict[Budget, BudgetPart] = {
    Budget.GLANCE: {**_SINGLE_WINDOW, "warmup_cap_s": 1.0, "window_s": 0.2, "window_runs_slow": 1, "at_most_s": 5.0},
    Budget.QUICK: {**_SINGLE_WINDOW, "warmup_cap_s": 2.0, "window_s": 0.3, "window_runs_slow": 3, "at_most_s": 30.0},
    Budget.STANDARD: BudgetPart(
        window_s=0.5, window_runs=20, window_runs_slow=5, windows_agreeing=3, at_least_s=2.0, at_most_s=30.0
    ),
    Budget.PRECISE: BudgetPart(
        window_s=1.0, window_runs=40, window_runs_slow=10, windows_agreeing=3, at_least_s=4.0, at_most_s=60.0
    ),
}


def make_budget_part(budget: Budget) -> BudgetPart:
    return _BUDGETS[budget].copy()
