"""The Python runner settles windows, compares outputs and reads profiles as the shared vectors say."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from farm.contract.cells import Budget
from tests.vectors import SUBJECTS, read
from worker.agent.measurement.orders import make_budget_part
from worker.runner import parity, profile, windows
from worker.runner.order import BudgetOrder

MS = 1_000_000


def found_in_windows(case: dict[str, Any]) -> dict[str, Any]:
    """Warm-up, then windows, on a clock that only the inferences move."""
    now = 0

    def lasting() -> Iterator[float]:
        for number, ms in case["inferences_ms"]:
            yield from itertools.repeat(ms, number)
        yield from itertools.repeat(ms)

    durations = lasting()

    def call() -> None:
        nonlocal now
        now += round(next(durations) * MS)

    budget = BudgetOrder(**make_budget_part(Budget(case["budget"])))
    warm = windows.warm_up(call, budget, clock=lambda: now)
    taken = windows.measure(call, budget, clock=lambda: now)
    return {
        "warmup_runs": warm.runs,
        "warmup_ms": warm.wall_ns / MS,
        "has_agreed": warm.agreed,
        "n": len(taken.durations),
        "wall_ms": taken.wall_ns / MS,
        "is_stable": taken.is_stable,
        "p50_ms": float(np.median(np.array(taken.durations))) / MS,
    }


def array_of(told: dict[str, Any]) -> "np.ndarray[Any, Any]":
    """Numbers that are texts are read in the array's own type."""
    kind = np.dtype(told["dtype"])
    values = [int(one) if kind.kind in "iu" else float(one) for one in told["data"]]
    return np.array(values, dtype=kind).reshape(told["shape"])


def found_in_parity(case: dict[str, Any]) -> dict[str, Any]:
    reference = None if case["reference"] is None else array_of(case["reference"])
    limits = {name: case[name] for name in ("atol", "rtol")}
    return parity.compare_output("y", array_of(case["output"]), reference, **limits)


def found_in_profile(case: dict[str, Any]) -> dict[str, Any]:
    summary = profile.summarise(case["events"], skip_runs=case["skipped"])
    rows = [{key: value for key, value in row.items() if key != "memory_bytes"} for row in profile.make_rows(summary)]
    return {"runs": summary.runs, "run_us": summary.run_us, "rows": rows}


FOUND = {"windows": found_in_windows, "parity": found_in_parity, "profile": found_in_profile}
CASES = [(subject, case) for subject in SUBJECTS for case in read(subject)]


@pytest.mark.parametrize(("subject", "case"), CASES, ids=[f"{subject}: {case['name']}" for subject, case in CASES])
def test_the_python_runner_finds_what_the_vectors_say(subject: str, case: dict[str, Any]) -> None:
    assert_alike(FOUND[subject](case), case["found"])


def assert_alike(found: Any, wanted: Any) -> None:
    """Equal, numbers to nine digits."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert_alike(found[key], value)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_alike(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    else:
        assert found == wanted
