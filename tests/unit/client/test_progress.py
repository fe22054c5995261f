"""What `bench` says while it measures: often enough, with estimates that follow the machine."""

import io

import pytest
from rich.console import Console

from onnxfarm.here import progress
from onnxfarm.testing import Clock
from tests.unit.rules.making import make_block, make_round


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
    estimate.begin()
    assert estimate.left_s == pytest.approx(60 * block.minutes)
    for _ in range(3):
        clock.now += 30.0
        estimate.note_round()
    # five more of 30 s each, however much less was planned
    assert estimate.left_s == pytest.approx(150.0)
    clock.now += 10.0
    assert estimate.left_s == pytest.approx(140.0)


def test_installing_is_not_counted_into_the_pace(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block], clock=clock)
    estimate.start_block(1)
    clock.now += 300.0
    estimate.begin()
    assert estimate.left_s == pytest.approx(60 * block.minutes)


def test_later_blocks_take_as_much_longer_as_this_one_does(clock: Clock) -> None:
    block = make_block()
    estimate = progress.Estimate([block, block], clock=clock)
    estimate.start_block(1)
    estimate.begin()
    for _ in range(8):
        clock.now += 3 * block.round_s
        estimate.note_round()
    assert estimate.left_s == pytest.approx(3 * 60 * block.minutes)


def test_a_first_round_that_takes_longer_than_all_was_planned_has_no_estimate(clock: Clock) -> None:
    estimate = progress.Estimate([make_block()], clock=clock)
    estimate.start_block(1)
    estimate.begin()
    clock.now += 3600.0
    assert estimate.left_s is None


def test_something_is_said_every_five_seconds_while_a_runtime_is_installed(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    follower.say("installing onnxruntime==1.29.0")
    said = len(out.getvalue().splitlines())
    for second in range(1, 61):
        clock.now = float(second)
        follower.say_again()
    lines = out.getvalue().splitlines()[said:]
    assert len(lines) >= 12
    assert "installing onnxruntime==1.29.0, for 60 s" in lines[-1]


def test_nothing_is_repeated_that_was_said_just_now(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.say("preparing runtimes and files")
    follower.take(make_round(0, {0: 1.0, 1: 1.0}))
    before = out.getvalue()
    clock.now += 3.0
    follower.say_again()
    assert out.getvalue() == before


def test_waiting_for_the_machine_says_who_has_it(clock: Clock) -> None:
    follower, out = lines_of(clock)
    follower.start_block(make_block(), number=1)
    follower.wait("`onnxfarm bench` (process 4711) has been measuring on this machine since 14:02:00.")
    assert "block 1 of 1: waiting. `onnxfarm bench` (process 4711) has been measuring" in out.getvalue()
