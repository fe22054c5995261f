"""What `bench` says while it measures: often enough, with estimates that follow the machine."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import TextColumn

from farm.rules.planning.time_left import format_about
from onnxfarm.here import progress
from onnxfarm.testing import Clock
from tests.unit.rules.making import make_block, make_check, make_round


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


def lines_of(clock: Clock) -> tuple[progress.Follower, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, width=200)
    return progress.Follower([make_block()], console=console, bar=None, clock=clock), out


def test_an_estimate_follows_the_rounds_once_there_are_two(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    assert estimate.remaining_s == pytest.approx(60 * block.minutes)
    for _ in range(3):
        clock.now += 1.2 * block.round_s
        estimate.count_round(is_disturbed=True)
    # five more like these
    assert estimate.remaining_s == pytest.approx(6 * block.round_s)
    clock.now += 1.0
    assert (estimate.remaining_s, estimate.is_slowed) == (pytest.approx(6 * block.round_s - 1.0), False)


def test_an_estimate_has_the_rounds_that_a_verdict_takes_and_says_that_the_machine_is_busy(clock: Clock) -> None:
    block = make_block(budget="standard")
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    for _ in range(3):
        clock.now += 8 * block.round_s
        estimate.count_round(is_disturbed=True)
    assert (estimate.remaining_s, estimate.is_slowed) == (pytest.approx(5 * 8 * block.round_s), True)
    estimate.count_round()
    assert not estimate.is_slowed


def test_installing_is_not_counted_into_the_pace(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    clock.now += 300.0
    estimate.start_clock()
    assert estimate.remaining_s == pytest.approx(60 * block.minutes)


def test_later_blocks_take_as_much_longer_as_this_one_does(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block, block], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    for _ in range(8):
        clock.now += 1.5 * block.round_s
        estimate.count_round()
    assert estimate.remaining_s == pytest.approx(1.5 * 60 * block.minutes)


def test_checks_of_other_arms_do_not_begin_the_block_again(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    clock.now += 2.0
    estimate.start_clock()
    assert estimate.remaining_s == pytest.approx(60 * block.minutes - 2.0)


def test_what_checks_take_here_and_now_lengthens_the_estimate(clock: Clock) -> None:
    block = make_block()
    follower, out = lines_of(clock)
    follower.start_block(block, number=1)
    follower.show_activity("checking: onnxruntime==1.29.0")
    clock.now += 4 * (block.once_s or 0.0)
    follower.count_report(make_check(0))
    follower.count_report(make_check(1))
    clock.now += 4.0
    follower.repeat_activity()
    # half of what comes before the rounds took four times as long as all of it should
    left_s = 8 * 60 * block.minutes - clock.now
    assert out.getvalue().splitlines()[-1].endswith(f", time left: {format_about(left_s)}")


def test_a_first_round_that_took_long_leaves_as_much_to_do_as_while_it_was_under_way(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    for _ in range(progress.CHECKS * len(block.arms)):
        estimate.count_check()
    clock.now += 140.0
    under_way_s = estimate.remaining_s
    estimate.count_round()
    assert estimate.remaining_s == pytest.approx(under_way_s)


def test_a_first_round_that_takes_longer_than_all_was_planned_has_no_estimate(clock: Clock) -> None:
    estimate = progress.Estimate([make_block()], clock=clock)
    estimate.start_block(1)
    estimate.start_clock()
    clock.now += 3600.0
    assert estimate.remaining_s is None


def test_a_log_says_within_five_seconds_what_still_goes_on(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    follower.show_activity("installing onnxruntime==1.29.0")
    said = len(out.getvalue().splitlines())
    for second in range(1, 62):
        clock.now = float(second)
        follower.repeat_activity()
    lines = out.getvalue().splitlines()[said:]
    assert [line.split(", about")[0] for line in lines] == [
        f"block 1 of 1: installing onnxruntime==1.29.0, for {seconds} s" for seconds in range(4, 62, 4)
    ]


def test_a_block_that_takes_long_to_prepare_is_not_silent(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    clock.now = 4.0
    follower.repeat_activity()
    assert "for 4 s" in out.getvalue().splitlines()[-1]


def test_a_bar_renews_its_seconds_by_itself(clock: Clock) -> None:
    bar = RichProgress(TextColumn("{task.description}"), console=Console(file=io.StringIO()), disable=True)
    follower = progress.Follower([make_block()], console=bar.console, bar=bar, clock=clock)
    follower.start_block(make_block(), number=1)
    follower.show_activity("checking: onnxruntime==1.29.0")
    clock.now = 5.0
    follower.repeat_activity()
    assert bar.tasks[0].description == "block 1 of 1: checking: onnxruntime==1.29.0, for 5 s, time left: about 15 s"


def test_nothing_is_repeated_that_was_said_just_now(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.show_activity("preparing runtimes and files")
    follower.count_report(make_round(0, {0: 1.0, 1: 1.0}))
    printed = out.getvalue()
    clock.now += 3.0
    follower.repeat_activity()
    assert out.getvalue() == printed


def test_waiting_for_the_machine_says_who_has_it_as_it_begins_and_then_once_a_minute(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    follower.show_activity("making the reference outputs")
    holder = "`onnxfarm bench` (process 4711) has been measuring on this machine since 14:02:00."
    before = len(out.getvalue().splitlines())
    for second in range(181):
        clock.now = float(second)
        if second % 60 == 0:
            follower.show_wait(holder)
        follower.repeat_activity()
    waited = out.getvalue().splitlines()[before:]
    assert waited[0] == f"block 1 of 1: waiting. {holder}"
    assert [line.split(" on this machine")[0] for line in waited] == [waited[0].split(" on this machine")[0]] * 4
    assert waited[1].endswith("since 14:02:00, for 60 s, about 20 s once it begins")
    follower.clear_activity()
    printed = out.getvalue()
    clock.now += 300.0
    follower.repeat_activity()
    assert out.getvalue() == printed


def test_nothing_is_left_of_what_has_not_begun(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    assert out.getvalue().splitlines()[-1] == "block 1 of 1: 2 cells, about 20 s once it begins"
    follower.show_activity("checking: onnxruntime==1.29.0")
    follower.count_report(make_round(0, {0: 1.0, 1: 1.0}))
    assert out.getvalue().splitlines()[-1].endswith("round 1 measured, time left: about 20 s")


def test_an_arm_is_named_as_its_cell(clock: Clock) -> None:
    follower, out = lines_of(clock)
    block = make_block()
    follower.start_block(block, number=1)
    follower.show_activity("installing: onnxruntime==1.31.1, fp32, arm 1")
    follower.show_activity("installing: onnxruntime==1.31.1, fp32, arm 99")
    assert out.getvalue().splitlines()[-2:] == [
        f"installing: onnxruntime==1.31.1, fp32, {block.arms[1].id}",
        "installing: onnxruntime==1.31.1, fp32",
    ]
