"""How long measuring goes on: as planned, then at the pace of the rounds; never the same words for minutes."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from farm.contract.cells import Budget
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import max_rounds_to_order
from farm.rules.planning.time_left import BlockProgress, describe_time_left, list_decision_rounds, seconds_left
from tests.unit.rules.making import make_block
from worker.agent.measurement.schedule import BlockSchedule

RECORDED = Path(__file__).parents[2] / "bench" / "real_aa.jsonl"


def ahead(*, rounds: int = 0, **changes: object) -> BlockProgress:
    """A block of 8 rounds of 5 s after 20 s of checks: one minute."""
    known = {"planned_s": 60.0, "once_s": 20.0, "round_s": 5.0, "rounds": rounds, "ends": [8]}
    return BlockProgress(**{**known, **changes})


def test_what_has_not_begun_takes_what_was_planned() -> None:
    assert seconds_left([ahead(), ahead()]) == 120.0
    assert seconds_left([ahead(), ahead()], at_once=2) == 60.0


def test_checks_that_take_longer_than_planned_lengthen_the_rest() -> None:
    assert seconds_left([ahead(begun_s=10.0)]) == 50.0
    # 25 s were planned until the first round: after 50 s without it all takes twice as long, which was promised
    assert seconds_left([ahead(begun_s=50.0)]) == pytest.approx(70.0)
    # and after that nobody can tell
    assert seconds_left([ahead(begun_s=120.0)]) is None


def test_before_a_round_checks_and_traces_tell_how_long_a_launch_takes_here() -> None:
    slow = ahead(begun_s=50.0, checked=0.5, checked_s=40.0, min_rounds=8)
    assert (slow.slowdown, slow.launch_slowdown) == (None, 4.0)
    assert seconds_left([slow]) == 4.0 * 60.0 - 50.0
    # the block after it too
    assert seconds_left([slow, ahead()]) == 2 * 4.0 * 60.0 - 50.0
    assert seconds_left([replace(slow, limit_s=150.0)]) == 100.0


def test_a_first_round_that_takes_long_lengthens_those_behind_it() -> None:
    """3 min were left at 0 of 24 rounds, of which the first had taken 2 min 20 s."""
    standing = ahead(begun_s=160.0, since_s=140.0, ends=[8, 24], min_rounds=8)
    assert seconds_left([standing]) == 15 * 140.0
    # seven further rounds are the least, and no more begin past what was promised, or the limit
    assert seconds_left([replace(standing, promised_s=120.0)]) == 7 * 140.0
    assert seconds_left([replace(standing, promised_s=120.0, limit_s=600.0)]) == 440.0
    assert seconds_left([replace(standing, promised_s=120.0, rounds=1, after_s=60.0)]) == 6 * 140.0 + 60.0
    # as planned as long as it takes no longer than a round, and where nobody planned how long that is
    assert seconds_left([ahead(begun_s=24.0, since_s=4.0)]) == 36.0
    assert seconds_left([ahead(begun_s=24.0, since_s=24.0, once_s=0.0, round_s=0.0)]) == 36.0


def test_the_least_rounds_are_measured_past_what_was_promised_until_the_limit() -> None:
    late = ahead(rounds=3, begun_s=110.0, rounds_s=(30.0, 30.0), promised_s=120.0, ends=[8, 24], min_rounds=8)
    assert seconds_left([late]) == 150.0
    assert seconds_left([replace(late, limit_s=200.0)]) == 90.0
    assert seconds_left([replace(late, rounds=8)]) == 30.0


def test_rounds_have_a_pace() -> None:
    assert seconds_left([ahead(rounds=3, begun_s=110.0, rounds_s=(30.0, 30.0))]) == 150.0
    assert seconds_left([ahead(rounds=3, begun_s=120.0, rounds_s=(30.0, 30.0), since_s=10.0)]) == 140.0


def test_a_round_that_hangs_slows_the_pace() -> None:
    before = ahead(rounds=3, begun_s=1.0, rounds_s=(10.0, 10.0), since_s=9.0)
    hangs = ahead(rounds=3, begun_s=1.0, rounds_s=(10.0, 10.0), since_s=100.0)
    assert (before.pace_s, hangs.pace_s) == (10.0, 40.0)
    assert seconds_left([hangs]) == 160.0


@pytest.mark.parametrize(
    ("changes", "is_slowed"),
    [
        ({"rounds": 5, "rounds_s": (5.0,) * 4, "since_s": 4.0}, False),
        # one round that stands still is not made up for by those before it
        ({"rounds": 5, "rounds_s": (5.0,) * 4, "since_s": 8.0}, True),
        ({"rounds": 1, "since_s": 8.0}, True),
        ({"begun_s": 24.0}, False),
        ({"begun_s": 40.0}, True),
        ({"begun_s": 40.0, "round_s": 0.0}, False),
        # further traces follow the last round
        ({"rounds": 8, "rounds_s": (5.0,) * 7, "since_s": 8.0}, False),
        ({"rounds": 9, "rounds_s": (5.0,) * 8, "since_s": 8.0}, False),
    ],
)
def test_a_round_that_stands_still_is_that_of_a_busy_machine(changes: dict[str, Any], is_slowed: bool) -> None:
    found = ahead(**changes)
    assert (found.is_slowed(), found.is_slowed(usual=10.0)) == (is_slowed, False)


def test_the_last_rounds_alone_make_the_pace() -> None:
    assert ahead(rounds=7, rounds_s=(90.0, 10.0, 10.0, 10.0, 10.0, 10.0)).pace_s == 10.0


def test_blocks_to_come_take_as_much_longer_as_the_ones_before() -> None:
    ended = ahead(rounds=8, rounds_s=(15.0,) * 7)
    assert seconds_left([ended, ahead()]) == 180.0


def test_what_follows_the_last_round_has_no_estimate() -> None:
    assert seconds_left([ahead(rounds=8, rounds_s=(5.0,) * 7)]) is None
    assert seconds_left([ahead(rounds=8, rounds_s=(5.0,) * 7, after_s=60.0)]) is None
    assert seconds_left([ahead(rounds=7, rounds_s=(5.0,) * 6, after_s=60.0)]) == 65.0
    assert seconds_left([]) is None


def test_a_plan_of_before_rounds_were_estimated_still_has_its_minutes() -> None:
    old = ahead(once_s=0.0, round_s=0.0, begun_s=15.0)
    assert seconds_left([old]) == 45.0
    assert ahead(round_s=0.0, rounds=2, rounds_s=(9.0,)).slowdown is None


@pytest.mark.parametrize(
    ("budget", "rounds", "most", "expected"),
    [
        (Budget.STANDARD, 0, 24, 12),
        (Budget.STANDARD, 8, 24, 16),
        (Budget.STANDARD, 12, 24, 20),
        (Budget.STANDARD, 16, 24, 24),
        (Budget.STANDARD, 24, 24, 24),
        (Budget.STANDARD, 25, 24, 26),
        (Budget.STANDARD, 40, 24, 40),
        (Budget.PRECISE, 0, 48, 24),
        (Budget.QUICK, 0, 8, 8),
        (Budget.STANDARD, 0, 8, 8),
    ],
)
def test_a_block_is_expected_to_have_its_usual_rounds_and_at_each_look_those_that_half_of_them_take(
    budget: Budget, rounds: int, most: int, expected: int
) -> None:
    ends = list_decision_rounds(budget, minimum=ROUNDS[budget].minimum, maximum=most)
    assert ahead(rounds=rounds, ends=ends, replaced=max_rounds_to_order(most)).expected_rounds == expected


def recorded_rounds() -> list[float]:
    """What rounds took on a machine that became quiet, then busy again: an eighth of each recorded block."""
    told = map(json.loads, RECORDED.read_text().splitlines())
    blocks = {(entry["model"], entry["block"]): entry["wall_s"] for entry in told if entry.get("samples")}
    return [wall_s / 8.0 for wall_s in blocks.values()]


def estimates(durations: Iterable[float]) -> Iterator[tuple[BlockProgress, float, float]]:
    """A `standard` block that no look decides, after each round that the node's own clock lets it measure: as far as it
    is, the time left, and what its latest round took."""
    now = 0.0
    block = make_block(budget="standard")
    promised_s = block.max_duration_s(block.max_rounds)
    schedule = BlockSchedule(promised_s, min_rounds=block.min_rounds, clock=lambda: now)
    rounds: list[float] = []
    for duration, _ in zip(durations, range(max_rounds_to_order(block.max_rounds)), strict=False):
        with schedule.time_round():
            now += duration
        rounds.append(duration)
        told = replace(BlockProgress.from_plan(block, rounds=len(rounds)), begun_s=now, rounds_s=[*rounds])
        left_s = seconds_left([told])
        if not schedule.has_time_for_round:
            return
        if left_s is not None:
            yield told, left_s, duration


@pytest.mark.parametrize("start", range(0, 102, 3))
def test_what_is_left_neither_jumps_nor_passes_what_was_promised(start: int) -> None:
    """20 s became 20 minutes when the twelfth round had decided nothing on a busy machine, past twice its plan."""
    recorded = recorded_rounds()
    quiet_s = median(recorded)
    scale = (make_block(budget="standard").round_s or 0.0) / quiet_s
    said = list(estimates(scale * duration for duration in [*recorded[start:], *recorded[:start]]))
    for told, left_s, duration in said:
        least_s = (told.min_rounds - told.rounds) * (told.pace_s or 0.0)
        assert left_s <= max(told.promised_s - (told.begun_s or 0.0), 1.001 * least_s, duration * 2)
    # after the first round, which tells how fast this machine is
    assert all(after[1] <= 2.2 * max(before[1], after[2]) for before, after in pairwise(said))


def test_a_block_of_a_plan_is_read_off_it() -> None:
    block = make_block()
    assert seconds_left([BlockProgress.from_plan(block)]) == pytest.approx(60 * block.minutes)


@pytest.mark.parametrize(
    ("seconds", "words"), [(1.0, "about 5 s"), (23.0, "about 25 s"), (89.0, "about 90 s"), (190.0, "about 3 min")]
)
def test_seconds_are_said_in_steps(seconds: float, words: str) -> None:
    assert describe_time_left(seconds) == f"time left: {words}"
    assert describe_time_left(seconds, is_measuring=False) == f"{words} once it begins"
    assert describe_time_left(seconds, is_measuring=False, least_s=4.0) == f"{words} once it begins"
    least = describe_time_left(seconds, is_measuring=False, least_s=720.0)
    assert least == f"begins in at least about 12 min, {words} of measuring"
    assert (
        describe_time_left(20.0, is_measuring=False, begins_s=seconds) == f"begins in {words}, about 20 s of measuring"
    )


@pytest.mark.parametrize(
    ("rounds_s", "usual", "is_slowed"), [((), 1.0, False), ((20.0, 20.0), 1.0, True), ((20.0, 20.0), 1.9, False)]
)
def test_a_machine_is_slowed_where_rounds_take_longer_than_usual_there(
    rounds_s: tuple[float, ...], usual: float, is_slowed: bool
) -> None:
    assert ahead(rounds=2, round_s=10.0, rounds_s=rounds_s).is_slowed(usual=usual) == is_slowed
