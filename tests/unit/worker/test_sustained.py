"""The sustained pass: points of a curve, thinned where there are too many inferences, with a clock from outside."""

from array import array

from worker.runner.scenarios.sustained import Point, record_points, summarise_point


class Clock:
    """Time that only calls spend."""

    def __init__(self, call_ns: int) -> None:
        self.now = 1_000
        self.call_ns = call_ns

    def __call__(self) -> int:
        return self.now

    def call(self) -> None:
        self.now += self.call_ns


def test_points_follow_each_other_without_a_gap() -> None:
    clock = Clock(1_000_000)
    points = record_points(clock.call, points=3, point_s=0.5, clock=clock)
    assert [point.runs for point in points] == [500, 500, 500]
    assert [point.began_ns for point in points[1:]] == [point.ended_ns for point in points[:-1]]
    assert summarise_point((points[0],)) == {
        "began_ns": 1_000, "ended_ns": 500_001_000, "n": 500, "p50_ms": 1.0, "p90_ms": 1.0,
    }  # fmt: skip


def test_a_slow_down_shows_in_the_points_behind_it() -> None:
    clock = Clock(1_000_000)

    def call() -> None:
        clock.call_ns = 2_000_000 if clock.now > 1_000_000_000 else 1_000_000
        clock.call()

    medians = [summarise_point((point,))["p50_ms"] for point in record_points(call, points=4, point_s=0.5, clock=clock)]
    assert medians == [1.0, 1.0, 2.0, 2.0]


def test_an_inference_longer_than_a_point_leaves_points_out() -> None:
    clock = Clock(700_000_000)
    points = record_points(clock.call, points=4, point_s=0.5, clock=clock)
    assert [point.runs for point in points] == [1, 1, 1]
    assert points[-1].ended_ns == 2_100_001_000


def test_long_points_keep_a_bounded_number_of_durations() -> None:
    point = Point(max_durations=100)
    for start in range(0, 1_000, 70):
        point.add_durations(array("Q", range(start, min(1_000, start + 70))))
    assert point.runs == 1_000
    assert len(point.durations) <= 100
    steps = {later - earlier for earlier, later in zip(point.durations, point.durations[1:], strict=False)}
    assert steps == {16}, "evenly spaced, whatever the stretches were"


def test_threads_are_pooled() -> None:
    clock = Clock(1_000_000)
    first, second = record_points(clock.call, points=1, point_s=0.1, clock=clock)[0], Point()
    second.add_durations(array("Q", [3_000_000] * 300))
    second.began_ns, second.ended_ns = 500, 2_000_000_000
    both = summarise_point((first, second))
    assert (both["n"], both["p50_ms"], both["began_ns"], both["ended_ns"]) == (400, 3.0, 500, 2_000_000_000)
