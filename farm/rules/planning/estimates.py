"""Estimates how long measuring will take: the seconds of a sample, of an arm and of a launch, and the timeouts.

The constants are calibrated on x86-64 with two cores: a process launch with its sandbox, imports and session takes
about 0.6 s, so that a quick sample of a fast model takes about 1.2 s. A plan shows these estimates, and a run shows the
measured times.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from farm.contract.cells import Budget, CellSpec
from farm.rules.cells.scenario import UNKNOWN_LATENCY_MS, Scenario
from farm.rules.cells.scenarios import of_cell
from farm.rules.runtimes import engines

LAUNCH_S = 0.45
WARMUP_S = 0.25
WARMUP_RUNS = 5
# a profiled process runs for TRACE_S seconds, within these numbers of inferences
TRACE_S = 0.5
TRACE_RUNS = (10, 30)
# if rounds are traced, a launch opens a second session and profiles it for these seconds and at least these runs
SECOND_SESSION_S = 0.2
ROUND_TRACE_S = 0.25
ROUND_TRACE_RUNS = 5
# installing runtimes is not counted, since only the first block on a node does it
RUNNER_TIMEOUT_FLOOR_S = 120.0
BLOCK_TIMEOUT_FACTOR = 4.0
BLOCK_TIMEOUT_FLOOR_S = 900.0
BLOCK_TIMEOUT_CEILING_S = 7200.0
RUNNER_TIMEOUT_CEILING_S = 3600.0
# the sentence for fewer rounds than were asked for: why, and what to do
_OUT_OF_TIME = (
    "Time ran out, which launches here take more of than planned: reduce other load on the machine{}; launches "
    "are shortest with `--budget quick`."
)
OUT_OF_TIME = _OUT_OF_TIME.format(", measure fewer cells in one run")
OUT_OF_TIME_ALONE = _OUT_OF_TIME.format("")


@dataclass(frozen=True, slots=True)
class Rounds:
    """How many rounds a budget measures. `per_pair` rounds of each arm make one pair."""

    minimum: int
    usual: int
    maximum: int
    per_pair: int
    # the windows of a sample: their least number, the seconds and runs of each, and the limits of all seconds together
    windows: int
    window_s: float
    window_runs: int
    shortest_s: float
    longest_s: float


ROUNDS = {
    Budget.GLANCE: Rounds(1, 1, 1, 1, windows=1, window_s=0.2, window_runs=3, shortest_s=0.2, longest_s=5.0),
    Budget.QUICK: Rounds(8, 8, 8, 1, windows=1, window_s=0.3, window_runs=3, shortest_s=0.3, longest_s=30.0),
    Budget.STANDARD: Rounds(8, 12, 24, 1, windows=3, window_s=0.5, window_runs=20, shortest_s=2.0, longest_s=30.0),
    Budget.PRECISE: Rounds(16, 24, 48, 2, windows=3, window_s=1.0, window_runs=40, shortest_s=4.0, longest_s=60.0),
}

# inferences longer than this need only SLOW_MODEL_RUNS runs in a window
SLOW_MODEL_S = 0.1
SLOW_MODEL_RUNS = 5
# if an inference is shorter than this, the other call is timed too, for OTHER_CALL_SHARE of the time
SHORT_MODEL_S = 0.001
OTHER_CALL_SHARE = 0.25


def estimate_sample_s(budget: Budget, latency_ms: float | None, *, is_tracing: bool = False) -> float:
    """Estimate the wall-clock seconds of one process launch.

    `latency_ms` None stands for an unknown model. With `is_tracing`, the launch also traces a few inferences.
    """
    latency_s = _estimate_latency_s(latency_ms)
    rounds = ROUNDS[budget]
    runs = min(rounds.window_runs, SLOW_MODEL_RUNS) if latency_s > SLOW_MODEL_S else rounds.window_runs
    window_s = max(rounds.window_s, runs * latency_s)
    timed_s = min(max(rounds.shortest_s, rounds.windows * window_s), max(rounds.longest_s, window_s))
    timed_s += OTHER_CALL_SHARE * timed_s if latency_s < SHORT_MODEL_S else 0.0
    traced_s = SECOND_SESSION_S + max(ROUND_TRACE_S, (ROUND_TRACE_RUNS + WARMUP_RUNS) * latency_s)
    return LAUNCH_S + max(WARMUP_S, WARMUP_RUNS * latency_s) + timed_s + (traced_s if is_tracing else 0.0)


def estimate_arm_s(
    budget: Budget, latency_ms: float | None, *, rounds: int | None = None, is_tracing: bool = False
) -> float:
    """Estimate the seconds of one arm in a block: its check, its first trace and its rounds.

    `rounds` None means the usual number of the budget.
    """
    each_s = estimate_sample_s(budget, latency_ms, is_tracing=is_tracing)
    return estimate_setup_s(latency_ms) + (rounds or ROUNDS[budget].usual) * each_s


def estimate_search_s(scenario: Scenario, latency_ms: float | None) -> float:
    """Estimate the seconds of the launch that searches a load's rate before the rounds; 0 without such a search."""
    driven_s = scenario.search_s(latency_ms)
    return LAUNCH_S + driven_s if driven_s else 0.0


def sum_engine_launch_s(cells: Iterable[CellSpec]) -> float:
    """Sum the seconds that one launch of each cell takes longer than with ONNX Runtime, because of its engine."""
    return sum(engines.engine_of(cell.runtime).scenario_launch_s(of_cell(cell)) for cell in cells)


def sum_engine_setup_s(cells: Iterable[CellSpec]) -> float:
    """Sum the seconds that a launch and a check of each cell take longer than with ONNX Runtime."""
    cells = list(cells)
    return sum_engine_launch_s(cells) + sum(engines.engine_of(cell.runtime).check_s(cell.runtime) for cell in cells)


def estimate_setup_s(latency_ms: float | None) -> float:
    """Estimate the seconds of one arm's check and first trace, which happen once before its rounds."""
    latency_s = _estimate_latency_s(latency_ms)
    fewest, most = TRACE_RUNS
    traced_s = min(max(TRACE_S, fewest * latency_s), most * latency_s)
    return 2 * LAUNCH_S + WARMUP_RUNS * latency_s + traced_s


def _estimate_latency_s(latency_ms: float | None) -> float:
    return (UNKNOWN_LATENCY_MS if latency_ms is None else latency_ms) / 1000.0


def runner_timeout_s(budget: Budget, latency_ms: float | None, *, longer_s: float = 0.0) -> float:
    """Compute the seconds after which a runner process counts as hanging.

    `longer_s` is how many seconds longer the programs of its block take. The result is RUNNER_TIMEOUT_FLOOR_S at least
    and RUNNER_TIMEOUT_CEILING_S at most.
    """
    patient = ceil(4 * (estimate_sample_s(budget, latency_ms) + ROUNDS[budget].longest_s))
    return min(max(RUNNER_TIMEOUT_FLOOR_S, float(patient)) + 4 * longer_s, RUNNER_TIMEOUT_CEILING_S)


def block_timeout_s(
    budget: Budget, latency_ms: float | None, *, arms: int, longer_s: float = 0.0, is_tracing: bool = False
) -> float:
    """Compute the seconds after which a block counts as hanging: BLOCK_TIMEOUT_FACTOR times the maximum of rounds.

    `longer_s` is added to that: setup, and the seconds of sustained work. The result is BLOCK_TIMEOUT_FLOOR_S at least
    and BLOCK_TIMEOUT_CEILING_S at most.
    """
    expected = arms * estimate_arm_s(budget, latency_ms, rounds=ROUNDS[budget].maximum, is_tracing=is_tracing)
    patient = max(BLOCK_TIMEOUT_FLOOR_S, float(ceil(BLOCK_TIMEOUT_FACTOR * expected)))
    return min(patient + longer_s, BLOCK_TIMEOUT_CEILING_S)
