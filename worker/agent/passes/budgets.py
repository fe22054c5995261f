"""How long a cell is measured: docs/samples.md, "Budgets"."""

from farm.contract.cells import Budget
from worker.agent.passes.orders import BudgetPart

# a traced cell is profiled this long, 10 to 30 runs
TRACE_RUNS = 30
TRACE_S = 0.5
# … and this long where it is traced again and again to explain a change
FURTHER_TRACE_S = 0.25
# after the windows of each launch, where rounds are traced: no longer than this, and at most so many runs and events
ROUND_TRACE_S = 0.25
ROUND_TRACE_RUNS = 100
ROUND_TRACE_EVENTS = 20_000

_BUDGETS: dict[Budget, BudgetPart] = {
    Budget.GLANCE: {
        "warmup_s": 0.15,
        "warmup_cap_s": 1.0,
        "window_s": 0.2,
        "window_runs": 3,
        "window_runs_slow": 1,
        "windows_agreeing": 1,
        "at_most_s": 5.0,
    },
    Budget.QUICK: {
        "warmup_s": 0.15,
        "warmup_cap_s": 2.0,
        "window_s": 0.3,
        "window_runs": 3,
        "window_runs_slow": 3,
        "windows_agreeing": 1,
        "at_most_s": 30.0,
    },
    Budget.STANDARD: {
        "window_s": 0.5,
        "window_runs": 20,
        "window_runs_slow": 5,
        "windows_agreeing": 3,
        "at_least_s": 2.0,
        "at_most_s": 30.0,
    },
    Budget.PRECISE: {
        "window_s": 1.0,
        "window_runs": 40,
        "window_runs_slow": 10,
        "windows_agreeing": 3,
        "at_least_s": 4.0,
        "at_most_s": 60.0,
    },
}


def runner_budget(budget: Budget) -> BudgetPart:
    """The runner's `budget` of a sample."""
    return _BUDGETS[budget].copy()
