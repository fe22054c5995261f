"""What a wished change costs: the rounds and minutes that see it, or that no number of rounds will."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from farm.contract.cells import Budget
from farm.rules.comparing import power
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.planning import estimates
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import Wish
from farm.rules.wording.numbers import percent

# a budget and those that measure longer
_LONGER = (Budget.QUICK, Budget.STANDARD, Budget.PRECISE)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the cost of a change depends on: the noise of single rounds, the margin, and the size of the block."""

    noise: float
    margin: float
    arms: int
    latency_ms: float | None


def make_wish(change: float, budget: Budget, around: Circumstances) -> Wish:
    """Return the fewest rounds and the minutes that detect the change in 95 of 100 blocks, with a sentence.

    The budget is `budget` or a longer one. Where no number of rounds detects the change, only the sentence is set.
    """
    wished, margin = percent(change), percent(around.margin)
    if change <= around.margin:
        text = f"No number of rounds detects {wished}: changes within the margin of {margin} are called equal there."
        return Wish(change=change, text=text)
    for longer, rounds in _list_sufficient_rounds(change, budget, around):
        minutes = around.arms * estimates.estimate_arm_s(longer, around.latency_ms, rounds=rounds) / 60.0
        how = "" if longer == budget else f" with `budget: {longer.value}`"
        text = f"{wished} is detected in 95 of 100 blocks after {rounds} rounds{how}, about {minutes:.2g} minutes."
        return Wish(change=change, budget=longer, rounds=rounds, minutes=minutes, text=text)
    text = (
        f"No number of rounds detects {wished}: identical launches differ by {percent(around.noise)} there, and "
        f"{ROUNDS[_LONGER[-1]].most} rounds are the maximum. Reduce other load on the node, or ask for a larger change."
    )
    return Wish(change=change, text=text)


def _list_sufficient_rounds(change: float, budget: Budget, around: Circumstances) -> Iterator[tuple[Budget, int]]:
    # a glance compares nothing: its wish is that of the shortest budget that does
    first = _LONGER.index(budget) if budget in _LONGER else 0
    for longer in _LONGER[first:]:
        rounds = ROUNDS[longer]
        looks = [look for look in PLANNED_LOOKS if look <= rounds.most // rounds.per_pair]
        pairs = power.rounds_for(change, around.noise / sqrt(rounds.per_pair), around.margin, looks=looks)
        if pairs is not None:
            yield longer, max(rounds.least, pairs * rounds.per_pair)
