"""The cost of detecting a change that the user wishes to see: how many rounds and minutes it takes, if any do."""

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

# the budgets that compare something, the shortest first
_BUDGETS = (Budget.QUICK, Budget.STANDARD, Budget.PRECISE)


@dataclass(frozen=True, slots=True)
class BlockConditions:
    """What the cost of detecting a change in a block depends on."""

    # standard deviation of ln(new / old) over single rounds
    noise: float
    # changes up to this fraction are called equal
    margin: float
    arms: int
    # None where the model's latency is not known
    latency_ms: float | None


def make_wish(change: float, budget: Budget, block: BlockConditions) -> Wish:
    """Return the lowest number of rounds that detects the change in 95 of 100 blocks, their minutes and a sentence.

    The budget is `budget` or a longer one. Where no number of rounds detects the change, only the sentence is set.
    """
    wished, margin = percent(change), percent(block.margin)
    if change <= block.margin:
        text = f"No number of rounds detects {wished}: changes within the margin of {margin} are called equal there."
        return Wish(change=change, text=text)
    for longer, rounds in _list_sufficient_rounds(change, budget, block):
        minutes = block.arms * estimates.estimate_arm_s(longer, block.latency_ms, rounds=rounds) / 60.0
        setting = "" if longer == budget else f" with `budget: {longer.value}`"
        text = f"{wished} is detected in 95 of 100 blocks after {rounds} rounds{setting}, about {minutes:.2g} minutes."
        return Wish(change=change, budget=longer, rounds=rounds, minutes=minutes, text=text)
    text = (
        f"No number of rounds detects {wished}: identical launches differ by {percent(block.noise)} there, and "
        f"{ROUNDS[_BUDGETS[-1]].maximum} rounds are the maximum. Reduce other load on the node, or ask for a larger "
        "change."
    )
    return Wish(change=change, text=text)


def _list_sufficient_rounds(change: float, budget: Budget, block: BlockConditions) -> Iterator[tuple[Budget, int]]:
    # a glance compares nothing, so that the shortest budget that compares takes its place
    first = _BUDGETS.index(budget) if budget in _BUDGETS else 0
    for longer in _BUDGETS[first:]:
        rounds = ROUNDS[longer]
        looks = [look for look in PLANNED_LOOKS if look <= rounds.maximum // rounds.per_pair]
        pairs = power.rounds_for(change, block.noise / sqrt(rounds.per_pair), block.margin, looks=looks)
        if pairs is not None:
            yield longer, max(rounds.minimum, pairs * rounds.per_pair)
