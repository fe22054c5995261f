"""Verdicts on pairs: each word once at least, the looks, and what must hold for any launches."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.comparing import comparisons, look_levels, verdicts
from tests.unit import yard

MIRRORED = {"slower": "faster", "faster": "slower", "equal": "equal", "undecided": "undecided"}


def block(rounds: int, *, change: float = 0.0, spread: float = 0.01, seed: int = 1) -> np.ndarray:
    """Pairs of launches; `spread` is that of one launch."""
    pairs = np.exp(spread * np.random.default_rng(seed).normal(size=(rounds, 2)))
    pairs[:, 1] *= 1.0 + change
    return pairs


launches = st.floats(min_value=0.5, max_value=2.0)
blocks = st.lists(st.tuples(launches, launches), min_size=2, max_size=26)
changed_blocks = st.builds(
    lambda rounds, change, spread, seed: block(rounds, change=change, spread=spread, seed=seed).tolist(),
    rounds=st.integers(2, 26),
    change=st.sampled_from([-0.1, -0.03, 0.0, 0.01, 0.025, 0.05]),
    spread=st.sampled_from([0.0, 0.002, 0.01, 0.03]),
    seed=st.integers(0, 10_000),
)
any_blocks = blocks | changed_blocks


@pytest.mark.parametrize(
    ("change", "spread", "verdict", "rounds"),
    [
        (0.10, 0.01, "slower", 8),
        (-0.10, 0.01, "faster", 8),
        (0.0, 0.001, "equal", 8),
        (0.0, 0.2, "undecided", 24),
        (0.05, 0.03, "slower", 8),
        (0.035, 0.03, "slower", 12),
    ],
)
def test_a_block_of_24_rounds_gets_its_verdict_at_the_first_look_that_decides(
    change: float, spread: float, verdict: str, rounds: int
) -> None:
    judged = verdicts.judge_pairs(block(24, change=change, spread=spread))
    assert (judged.verdict, judged.rounds_used) == (verdict, rounds)
    assert judged.ci_low <= judged.ratio <= judged.ci_high
    assert judged.ci_level == 0.95


@pytest.mark.parametrize("rounds", range(2, 8))
def test_two_to_seven_rounds_are_undecided_however_clear_they_look(rounds: int) -> None:
    judged = verdicts.judge_pairs(block(rounds, change=1.0, spread=0.001))
    assert (judged.verdict, judged.rounds_used) == ("undecided", rounds)
    assert judged.rounds_needed == 8


def test_so_few_rounds_never_say_that_no_number_of_rounds_will_do() -> None:
    assert verdicts.judge_pairs(block(3, spread=1.0)).rounds_needed == 24


@pytest.mark.parametrize(
    ("rounds", "used"), [(8, 8), (11, 8), (12, 12), (23, 16), (24, 24), (31, 24), (60, 48), (97, 96)]
)
def test_rounds_after_the_last_look_are_left_out_and_said_so(rounds: int, used: int) -> None:
    assert verdicts.judge_pairs(block(rounds, spread=0.3)).rounds_used == used


def test_what_later_rounds_say_changes_no_verdict_that_stands() -> None:
    decided = block(24, change=0.1)
    other = decided.copy()
    other[8:, 1] *= 0.5
    assert verdicts.judge_pairs(decided) == verdicts.judge_pairs(other)


def test_a_change_is_called_beside_slow_launches_where_the_t_test_is_blind() -> None:
    pairs = block(24, change=0.05, spread=0.005)
    pairs[2, 0] *= 1.7
    judged = verdicts.judge_pairs(pairs)
    assert (judged.verdict, judged.test) == ("slower", "trimmed sign-flip")
    assert judged.p < look_levels.FLIP_LEVEL
    assert judged.set_aside == 1
    assert judged.ratio == pytest.approx(1.05, abs=0.01)
    assert judged.ci_high - judged.ci_low < 0.02


def test_no_pair_is_set_aside_before_there_are_twelve() -> None:
    pairs = block(8, change=0.05, spread=0.005)
    pairs[2, 0] *= 1.7
    assert verdicts.judge_pairs(pairs).set_aside == 0


def test_a_change_as_large_as_slow_launches_is_called_by_signs_at_the_last_look() -> None:
    """Trimming keeps slow launches under a large change: their pairs lie no further out than three times the median."""
    pairs = block(24, change=0.22, spread=0.005)
    pairs[[3, 9, 14], 0] *= 1.7
    pairs[[5, 18], 1] *= 2.2
    judged = verdicts.judge_pairs(pairs, looks=(24,))
    assert (judged.verdict, judged.test) == ("slower", "sign")
    assert judged.ci_low <= judged.ratio <= judged.ci_high


def test_a_certain_change_within_the_margin_is_no_change_of_consequence() -> None:
    judged = verdicts.judge_pairs(block(24, change=0.015, spread=0.001))
    assert judged.verdict == "equal"
    assert judged.p < look_levels.T_LEVEL


def test_a_change_right_at_the_margin_stays_undecided_for_ever() -> None:
    judged = verdicts.judge_pairs([(1.0, 1.02)] * 24)
    assert (judged.verdict, judged.rounds_needed) == ("undecided", None)


def test_equal_pairs_are_equal() -> None:
    judged = verdicts.judge_pairs([(1.3, 1.3)] * 8)
    assert (judged.verdict, judged.ratio, judged.p) == ("equal", 1.0, 1.0)


def test_pairs_of_one_ratio_are_certain() -> None:
    judged = verdicts.judge_pairs([(x, 1.05 * x) for x in (1.0, 2.0, 3.0, 0.7, 1.9, 5.0, 0.1, 1.1)])
    assert judged.verdict == "slower"
    assert judged.ratio == pytest.approx(1.05)


def test_an_undecided_block_names_the_rounds_that_would_decide() -> None:
    judged = verdicts.judge_pairs(block(8, change=0.08, spread=0.04, seed=2))
    assert judged.verdict == "undecided"
    assert judged.rounds_needed in (12, 16, 24)


def test_a_decided_block_needed_the_rounds_that_it_used() -> None:
    judged = verdicts.judge_pairs(block(24, change=0.1))
    assert judged.rounds_needed == judged.rounds_used
    assert verdicts.is_decided(judged)
    assert not verdicts.is_decided(verdicts.judge_pairs(block(24, spread=0.3)))


def test_many_blocks_are_judged_as_each_alone_and_in_their_order() -> None:
    given_blocks = [block(rounds, change=0.03, spread=0.02, seed=rounds) for rounds in (24, 3, 8, 24, 12, 30)]
    assert verdicts.judge_many(given_blocks) == [verdicts.judge_pairs(one) for one in given_blocks]


def test_more_blocks_than_fit_in_one_go_keep_their_order() -> None:
    given_blocks = [block(8, change=change) for change in (0.0, 0.1)] * (verdicts.CHUNK // 2 + 3)
    assert {one.verdict for one in verdicts.judge_many(given_blocks)[1::2]} == {"slower"}


def test_no_blocks_get_no_verdicts() -> None:
    assert verdicts.judge_many([]) == []


def test_a_comparison_takes_milliseconds_at_most() -> None:
    pairs = block(24, spread=0.3)
    verdicts.judge_pairs(pairs)
    # 4 to 7 of them on an idle machine and on a busy one; a yard is half a millisecond of an idle core
    assert yard.least_s(lambda: verdicts.judge_pairs(pairs)) < 15 * yard.yard_s()


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(1.0, 2.0)], "1 launch of an arm"),
        (np.empty((0, 2)), "0 launch of an arm"),
        ([(1.0, 2.0, 3.0)] * 8, "shape"),
        ([1.0, 2.0], "shape"),
        ([(1.0, float("nan"))] * 8, "not a finite number above zero"),
        ([(1.0, float("inf"))] * 8, "not a finite number above zero"),
        ([(0.0, 1.0)] * 8, "not a finite number above zero"),
        ([(-1.0, 1.0)] * 8, "not a finite number above zero"),
    ],
)
def test_what_is_no_block_of_launches_is_refused(pairs: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        verdicts.judge_pairs(pairs)


@pytest.mark.parametrize("margin", [-0.01, 1.0, float("nan"), float("inf")])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="The margin is"):
        verdicts.judge_pairs(block(8), margin=margin)


@given(any_blocks)
def test_swapping_old_and_new_mirrors_ratio_and_verdict(pairs: list[tuple[float, float]]) -> None:
    one, other = verdicts.judge_pairs(pairs), verdicts.judge_pairs([(new, old) for old, new in pairs])
    assert other.verdict == MIRRORED[one.verdict]
    assert other.ratio == pytest.approx(1.0 / one.ratio)
    assert (other.ci_low, other.ci_high) == (pytest.approx(1.0 / one.ci_high), pytest.approx(1.0 / one.ci_low))
    assert (other.rounds_used, other.p) == (one.rounds_used, pytest.approx(one.p))


@given(any_blocks, st.sampled_from([1e-9, 1e-3, 0.5, 3.0, 1e6]))
def test_the_unit_of_the_samples_does_not_matter(pairs: list[tuple[float, float]], unit: float) -> None:
    one, other = verdicts.judge_pairs(pairs), verdicts.judge_pairs([(unit * old, unit * new) for old, new in pairs])
    assert (other.verdict, other.rounds_used) == (one.verdict, one.rounds_used)
    assert other.ratio == pytest.approx(one.ratio)
    assert other.p == pytest.approx(one.p, rel=1e-3, abs=1e-9)


@given(any_blocks, st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_a_wider_margin_never_turns_equal_into_a_change(pairs: list[tuple[float, float]], margin: float, more: float):
    narrow, wide = (verdicts.judge_pairs(pairs, margin=m) for m in (margin, margin + more))
    if narrow.verdict == "equal":
        assert wide.verdict == "equal"
    if wide.verdict in ("slower", "faster"):
        assert narrow.verdict == wide.verdict


@given(any_blocks)
def test_every_figure_is_a_finite_number_and_consistent(pairs: list[tuple[float, float]]) -> None:
    judged = verdicts.judge_pairs(pairs)
    figures = json.loads(json.dumps([judged.ratio, judged.ci_low, judged.ci_high, judged.p], allow_nan=False))
    assert all(number >= 0.0 for number in figures)
    assert judged.ci_low <= judged.ratio <= judged.ci_high
    assert 0.0 <= judged.p <= 1.0
    assert judged.smallest_detectable >= judged.margin
    assert judged.rounds_used <= len(pairs)
    if judged.verdict in ("slower", "faster"):
        assert abs(np.log(judged.ratio)) > np.log1p(judged.margin)
        assert judged.p_total <= comparisons.TOTAL_LEVEL
    if judged.verdict == "undecided" and judged.rounds_needed is not None:
        assert judged.rounds_needed > judged.rounds_used


@pytest.mark.parametrize("noise", ["normal", "bimodal"])
def test_few_of_many_comparisons_of_a_thing_with_itself_are_false_alarms(noise: str) -> None:
    rng = np.random.default_rng(11)
    logs = 0.05 * rng.normal(size=(2000, 24, 2))
    if noise == "bimodal":
        logs += np.where(rng.random(logs.shape) < 0.1, np.log(1.7), 0.0)
    judged = verdicts.judge_many(list(np.exp(logs)), margin=0.0)
    # 1 % is 20 of them; 34 would be three standard deviations more
    assert sum(one.verdict in ("slower", "faster") for one in judged) < 34


def test_unpaired_samples_are_judged_by_their_ranks() -> None:
    rng = np.random.default_rng(1)
    old, new = np.exp(0.01 * rng.normal(size=(2, 8)))
    judged = verdicts.judge_unpaired(old, 1.2 * new)
    assert (judged.verdict, judged.test, judged.rounds_used) == ("slower", "exact Mann-Whitney", 8)


@pytest.mark.parametrize(("old", "new"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], []), ([1.0, 2.0], [1.0, 0.0])])
def test_unpaired_samples_that_cannot_be_judged_are_refused(old: list[float], new: list[float]) -> None:
    with pytest.raises(ValueError, match=r"launch of an arm|not a finite number"):
        verdicts.judge_unpaired(old, new)


def test_counting_verdicts_agrees_with_judging_each_block() -> None:
    seen = [block(8, change=change, seed=seed) for seed, change in enumerate((0.0, 0.0, 0.3, -0.3))]
    judged = Counter(one.verdict for one in verdicts.judge_many(seen))
    assert verdicts.count_verdicts(seen) == judged
    assert {"slower", "faster"} <= judged.keys()
