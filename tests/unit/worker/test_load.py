"""An open loop against theory: latencies under a clock of our own are those of Lindley's recursion, to the last ns."""

import heapq
from typing import Any

import numpy as np
import pytest

from worker.runner import faults, windows
from worker.runner.order import Order, PhaseTimer
from worker.runner.scenarios import load
from worker.runner.scenarios.arrivals import START_DELAY_NS, RealClock, Served, draw_unit_gaps, serve
from worker.runner.scenarios.protocol import LaunchContext


class FakeClock:
    """Stands still but for what waits and works."""

    def __init__(self, *, oversleeps_ns: int = 0) -> None:
        self.ns = 1_000_000_000
        self._oversleeps_ns = oversleeps_ns

    def now(self) -> int:
        return self.ns

    def wait_until(self, moment_ns: int) -> None:
        self.ns = max(self.ns, moment_ns) + self._oversleeps_ns


def served_by_one(gaps_s: Any, services_s: Any, **clock: int) -> Served:
    own = FakeClock(**clock)
    left = iter(services_s)

    def work() -> None:
        own.ns += round(next(left) * 1e9)

    return serve([[work]], gaps_s, clock=own)


@pytest.mark.parametrize("load_of", [0.3, 0.6, 0.8, 0.95, 1.2])
def test_waits_are_those_of_lindleys_recursion(load_of: float) -> None:
    dice = np.random.default_rng(7)
    gaps_s = draw_unit_gaps(5_000, 3) / (load_of * 1000.0)
    services_s = np.round(dice.gamma(4.0, 0.00025, 5_000), 9)
    found = served_by_one(gaps_s, services_s)
    assert np.array_equal(found.services, np.round(services_s * 1e9).astype(np.uint64))
    wait, waits = 0, [0]
    for gap, service in zip(np.diff(found.due).tolist(), found.services.tolist(), strict=False):
        wait = max(0, wait + service - gap)
        waits.append(wait)
    assert (found.began - found.due).tolist() == waits
    assert found.latencies.tolist() == [wait + service for wait, service in zip(waits, found.services, strict=True)]
    assert found.late_ns == 0.0


def test_a_stall_is_in_the_latency_of_all_who_came_meanwhile() -> None:
    services_s = [0.1, *[0.001] * 9]
    found = served_by_one(np.full(10, 0.01), services_s)
    assert (found.latencies / 1e6).tolist() == pytest.approx([100, 91, 82, 73, 64, 55, 46, 37, 28, 19])
    assert found.wall_ns == 109_000_000


def test_the_same_seed_gives_both_arms_the_same_arrivals_in_the_same_proportions_at_any_rate() -> None:
    assert np.array_equal(draw_unit_gaps(700, 5), draw_unit_gaps(700, 5))
    assert not np.array_equal(draw_unit_gaps(700, 5), draw_unit_gaps(700, 6))
    gaps = draw_unit_gaps(20_000, 1)
    # of a Poisson process: mean and standard deviation 1
    assert gaps.mean() == pytest.approx(1.0, abs=0.03)
    assert gaps.std() == pytest.approx(1.0, abs=0.03)
    first = served_by_one(gaps[:10] / 50.0, [0.0001] * 10)
    assert np.allclose((first.due - 1_000_000_000 - START_DELAY_NS) / 1e9, np.cumsum(gaps[:10]) / 50.0, atol=2e-9)


def test_a_stream_that_wakes_late_is_known() -> None:
    found = served_by_one(np.full(100, 0.01), [0.001] * 100, oversleeps_ns=400_000)
    assert found.late_ns == 400_000
    busy = served_by_one(np.full(100, 0.0001), [0.001] * 100, oversleeps_ns=400_000)
    assert busy.late.size == 1, "whoever is busy waits for nobody"


def test_several_streams_are_a_queue_with_several_servers() -> None:
    """On the machine's clock, with work that sleeps: what they took, put through the recursion of such a queue."""
    gaps_s = draw_unit_gaps(120, 2) / 400.0
    clock = RealClock(is_shared=True)

    def work() -> None:
        clock.wait_until(clock.now() + 2_000_000)

    found = serve([[work], [work]], gaps_s, clock=clock)
    free = [0.0, 0.0]
    heapq.heapify(free)
    for due, began, ended in zip(found.due / 1e9, found.began / 1e9, found.ended / 1e9, strict=True):
        earliest = heapq.heappop(free)
        assert began >= max(due, earliest) - 1e-9
        heapq.heappush(free, ended)
    assert found.due.size == 120
    assert (found.ended > found.began).all()


def stepped(rate: float, p99_ms: float) -> load.RateStep:
    due = np.zeros(700, dtype=np.uint64)
    ended = np.full(700, round(p99_ms * 1e6), dtype=np.uint64)
    return load.RateStep(rate, Served(due, due, ended, due[:0]), cpu_ns=700_000)


def test_the_highest_rate_lies_between_those_on_both_sides_of_the_bound() -> None:
    curve = [stepped(rate, p99_ms) for rate, p99_ms in ((100, 1.0), (200, 10.0), (300, 1000.0))]
    assert load.find_highest_rate(curve, 10.0) == pytest.approx(200.0)
    assert load.find_highest_rate(curve, 100.0) == pytest.approx(250.0)
    assert load.find_highest_rate(curve, 2000.0) == 300
    assert load.find_highest_rate(curve, 0.5) is None


def test_a_rate_tells_its_curve_and_who_kept_the_bound() -> None:
    told = stepped(50.0, 20.0).make_phase(10.0)
    assert told["name"] == "50 per s"
    assert (told["metrics"]["p99_ms"], told["metrics"]["goodput_per_s"]) == (20.0, 0.0)
    assert stepped(50.0, 20.0).make_phase(None)["metrics"]["goodput_per_s"] == pytest.approx(700 / 0.02)
    assert told["metrics"]["cpu_ms"] == 0.001


def loop_over(*, service_s: float, clock: FakeClock | None = None, **asked: Any) -> load.OpenLoop:
    """A load whose only stream takes so long, under a clock of our own."""
    own = clock or FakeClock()
    scenario = {"rate": None, "bound_ms": None, "rates": [], "streams": 1, "sessions": "shared", "seed": 1, "made": {}}
    order = Order(kind="sample", model="", inputs="", provider="", scenario={"kind": "load", **scenario, **asked})
    found = load.OpenLoop(LaunchContext(order, PhaseTimer(launched_ns=None, entered_ns=0)), clock=own)

    def work() -> None:
        own.ns += round(service_s * 1e9)

    found._streams = [[work]]
    found._warm = windows.Warmup(runs=100, wall_ns=round(100 * service_s * 1e9), agreed=True)
    return found


def test_the_search_finds_the_rate_by_halving() -> None:
    found = loop_over(service_s=0.001, bound_ms=5.0)
    found._search()
    most = load.find_highest_rate(found._steps, 5.0)
    assert most is not None
    assert 600 < most < 900
    assert loop_over(service_s=0.001, rate=most)._drive_rate(most).p99_ms == pytest.approx(5.0, rel=0.25)
    assert len(found._steps) == load.HALVINGS


def test_a_bound_that_no_rate_keeps_is_refused_in_one_sentence() -> None:
    found = loop_over(service_s=0.008, bound_ms=4.0)
    with pytest.raises(faults.Refusal) as refused:
        found._search()
    assert refused.value.text.startswith("no rate was found whose p99 keeps the bound of 4 ms: at 15.62 per s")


def test_a_search_that_would_take_minutes_in_each_launch_is_refused_in_one_sentence() -> None:
    found = loop_over(service_s=0.02, bound_ms=500.0)
    with pytest.raises(faults.Refusal) as refused:
        found._search()
    assert refused.value.text == (
        "6 rates of 700 arrivals take about 169 s in each launch of this model, which is asked 50 times per s at most: "
        "write one rate in place of the bound alone"
    )
    assert not found._steps


def test_a_late_generator_is_refused_in_one_sentence() -> None:
    found = loop_over(service_s=0.001, rate=100.0, clock=FakeClock(oversleeps_ns=500_000))
    with pytest.raises(faults.Refusal, match=r"^generator late: at 100 per s .* 0\.50 ms after their arrivals"):
        found._drive_rate(100.0)
