"""Looking as often as one likes: when verdicts may change, and what that costs in false alarms."""

import numpy as np
import pytest

from farm.rules.comparing import flips, look_levels, special, verdicts
from farm.rules.comparing.comparisons import TOTAL_LEVEL
from tests.unit.rules.test_verdicts import block


def test_all_later_looks_together_have_half_a_level_however_many_follow() -> None:
    later = [look_levels.levels_at(place) for place in range(look_levels.PLANNED, 10_000)]
    assert sum(one.t for one in later) < look_levels.T_LEVEL / 2
    assert sum(one.flip for one in later) < look_levels.FLIP_LEVEL / 2
    assert sum(one.sign for one in later) < look_levels.SIGN_LEVEL / 2
    assert sum(1.0 - one.equality for one in later) < (1.0 - look_levels.EQUALITY_LEVEL) / 2


def test_looking_after_every_round_shows_no_other_verdict_than_the_looks_do() -> None:
    """Whoever asks for one round more, again and again, gets what one who waited gets."""
    pairs = block(70, change=0.05, spread=0.05, seed=3)
    seen = [verdicts.judge_pairs(pairs[:rounds]) for rounds in range(2, 71)]
    decided = [one for one in seen if verdicts.is_decided(one)]
    assert decided[0].rounds_used in look_levels.LOOKS[look_levels.PLANNED :]
    assert set(decided) == {decided[0]}
    assert seen[-len(decided) :] == decided


def test_few_comparisons_of_a_thing_with_itself_are_alarms_after_looking_at_each_of_100_rounds() -> None:
    logs = 0.05 * np.random.default_rng(5).normal(size=(600, 100, 2))
    counts = verdicts.count_verdicts(list(np.exp(logs)), margin=0.0)
    # 1 % is 6 of them; 14 would be more than three standard deviations above
    assert counts["slower"] + counts["faster"] < 14
    assert counts["equal"] == 0


def test_more_rounds_call_a_change_that_24_do_not_see() -> None:
    pairs = block(96, change=0.05, spread=0.05, seed=3)
    early, late = verdicts.judge_pairs(pairs[:24]), verdicts.judge_pairs(pairs)
    assert (early.verdict, late.verdict) == ("undecided", "slower")
    assert late.rounds_used > 24
    assert late.p_total <= TOTAL_LEVEL
    assert early.rounds_needed in (32, 48, 64, 96)


def test_more_rounds_say_that_noisy_launches_are_equal() -> None:
    pairs = block(96, spread=0.02, seed=8)
    early, late = verdicts.judge_pairs(pairs[:24]), verdicts.judge_pairs(pairs)
    assert (early.verdict, late.verdict) == ("undecided", "equal")


def test_the_farm_never_names_more_rounds_than_it_measures() -> None:
    judged = verdicts.judge_pairs(block(96, change=0.025, spread=0.08, seed=1))
    assert (judged.verdict, judged.rounds_needed) == ("undecided", None)


@pytest.mark.parametrize(("rounds", "said"), [(24, ""), (31, ""), (32, "Looked at 5 times"), (96, "Looked at 8 times")])
def test_looks_beyond_the_planned_ones_are_said(rounds: int, said: str) -> None:
    assert look_levels.describe_looks(rounds).startswith(said)
    assert bool(look_levels.describe_looks(rounds)) is bool(said)


@pytest.mark.parametrize("change", [0.0, 0.004, -0.009])
def test_rounding_the_sizes_of_many_pairs_shifts_p_by_little(change: float) -> None:
    """Against the normal distribution, which sums of so many flips follow closely."""
    row = np.random.default_rng(6).normal(change, 0.02, size=96)
    z = abs(row.sum()) / np.sqrt((row**2).sum())
    normal = 2.0 * float(special.ndtr(-z))
    assert flips.sign_flip_p(row) == pytest.approx(normal, rel=0.5)


def test_p_of_many_rounded_pairs_is_the_share_of_their_flips() -> None:
    row = np.random.default_rng(7).normal(0.004, 0.02, size=48)
    units = flips._round_to_units(row)
    signs = np.random.default_rng(8).choice([-1, 1], size=(200_000, len(units)))
    share = float(np.mean(np.abs(signs @ np.abs(units)) >= abs(int(units.sum()))))
    assert flips.sign_flip_p(row) == pytest.approx(share, abs=4e-3)


def test_many_pairs_without_any_difference_are_no_change() -> None:
    assert flips.sign_flip_p(np.zeros(48)) == 1.0
    assert verdicts.judge_pairs([(1.3, 1.3)] * 48, looks=(48,)).verdict == "equal"
