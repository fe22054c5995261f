"""Looking as often as one likes: false alarms and power of blocks that go on after their planned rounds.

    python -m tests.bench.continuing [--simulations 20000] [--seed 1]

Blocks of up to 200 rounds, looked at after every round. `alarms`: A/A blocks called slower or faster at any of them,
by the product's rule, with a margin of 0 and with the shipped one. `power`: how many blocks with a change are called
within 24 rounds, which is what fixed looks see, and within more; and how often the interval at the end holds the truth.
`rivals`: other rules for the rounds after the planned ones, with a margin of 0, where the planned looks decided
nothing, at the level that the product's tests have there together: spending over every round, and betting on signs or
on trimmed sizes, which may stop anywhere (test martingales; Ramdas et al., Game-theoretic statistics and safe
anytime-valid inference, 2023).

Where the normal distribution says of a sum that its p is above .02, that p stands for the one that is counted: no level
is near it, and a simulation takes a tenth of the time. Rivals that look after every round take normal p throughout.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farm.rules.comparing import flips, look_levels, power, special, statistics, verdicts
from farm.rules.comparing.comparisons import MARGIN
from tests.bench import figure, noise
from tests.options import read_options

ROUNDS = 200
TARGET = 0.01
SPREAD = 0.05
SCREENED_FROM_P = 0.02
CHUNK = 2_000
# what rivals may spend: half of the three levels
LEVEL = look_levels.LATER_SHARE * (look_levels.T_LEVEL + look_levels.FLIP_LEVEL + look_levels.SIGN_LEVEL)
# (s of the pairs, change)
CHANGES = ((0.03, 0.03), (0.056, 0.03), (0.056, 0.05), (0.1, 0.05))
WITHIN = (24, 48, 96, 192)
RIVAL_CHANGES = (0.0, 0.01, 0.02, 0.03)
RIVAL_S = 0.056
# the stakes of the betting rules, mixed in equal parts; sizes are in medians of those before
STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)

Floats = NDArray[np.float64]
# the first round after the planned ones at which each row is called, or ROUNDS + 1
Rival = Callable[[Floats], NDArray[np.int64]]


def main() -> None:
    """Prints the figures as JSON."""
    given = read_options(__doc__, simulations=20_000, seed=1)
    flips.sign_flip_p = screened(flips.sign_flip_p)  # type: ignore[assignment]
    few = max(100, given.simulations // 10)
    names = [name for name in noise.ALL if name != "ar, each arm by itself"]
    alarms = {
        name: {
            setting: alarms_of(name, given.simulations, margin=margin, seed=given.seed)
            for setting, margin in (("strict", 0.0), ("shipped", MARGIN))
        }
        for name in names
    }
    figure.publish(
        claim=f"At most {100 * TARGET:g} % of comparisons of a thing with itself are called, however often one looks.",
        seed=given.seed,
        figures={
            "simulations": given.simulations,
            "rounds": ROUNDS,
            "holds": {name: max(one["high"] for one in by.values()) <= TARGET for name, by in alarms.items()},
            "alarms": alarms,
            "power": [power_of(s, change, few, seed=given.seed) for s, change in CHANGES],
            "rivals": rivals(few, seed=given.seed),
        },
    )


def screened(counted: Callable[[Floats], float]) -> Callable[[Floats], float]:
    """The test, with the normal p in place of one that is far from every level."""

    def p(row: Floats) -> float:
        normal = float(normal_p(row[np.newaxis])[0])
        return normal if normal > SCREENED_FROM_P else counted(row)

    return p


def normal_p(rows: Floats) -> Floats:
    """Two-sided p of the sum of each row among its flips, by the normal distribution."""
    size = np.sqrt((rows**2).sum(axis=1))
    z = np.divide(np.abs(rows.sum(axis=1)), size, out=np.zeros(len(rows)), where=size > 0.0)
    return np.asarray(2.0 * special.ndtr(-z), dtype=np.float64)


def alarms_of(name: str, simulations: int, *, margin: float, seed: int) -> dict[str, Any]:
    """The share of A/A blocks that are called within all rounds, with its 95 % Clopper-Pearson interval."""
    rng = np.random.default_rng([seed, *name.encode(), round(1e6 * margin)])
    called = 0
    for start in range(0, simulations, CHUNK):
        logs = noise.ALL[name](min(CHUNK, simulations - start), SPREAD, rng, ROUNDS)
        called += _called(logs, margin=margin)
    low, high = statistics.clopper_pearson(called, simulations)
    return {"rate": called / simulations, "low": low, "high": high}


def power_of(s: float, change: float, simulations: int, *, seed: int) -> dict[str, Any]:
    """The share called within each number of rounds, with the shipped margin, and how often the interval holds it."""
    rng = np.random.default_rng([seed, round(1e6 * s), round(1e6 * change)])
    logs = noise.normal(simulations, s / np.sqrt(2.0), rng, ROUNDS)
    logs[:, :, 1] += np.log1p(change)
    called = {str(rounds): _called(logs[:, :rounds], margin=MARGIN, word="slower") / simulations for rounds in WITHIN}
    judged = verdicts.judge_many(list(np.exp(logs[: simulations // 4, : power.MAX_ROUNDS])))
    return {
        "s": s,
        "change": change,
        "slower_within": called,
        "mean_rounds": sum(one.rounds_used for one in judged) / len(judged),
        "interval_holds": sum(one.ci_low <= 1.0 + change <= one.ci_high for one in judged) / len(judged),
    }


def rivals(simulations: int, *, seed: int) -> dict[str, Any]:
    """The share that each rule calls within so many rounds, of blocks that no planned look decided; margin 0."""
    found: dict[str, Any] = {name: {} for name in RIVALS}
    for change in RIVAL_CHANGES:
        rng = np.random.default_rng([seed, round(1e6 * change)])
        logs = noise.normal(simulations, RIVAL_S / np.sqrt(2.0), rng, ROUNDS)
        ratios = logs[:, :, 1] - logs[:, :, 0] + np.log1p(change)
        pairs = np.exp(np.stack([np.zeros_like(ratios), ratios], axis=2))
        first = verdicts.judge_many(list(pairs[:, : look_levels.PLANNED_LOOKS[-1]]), margin=0.0)
        left = ratios[[one.verdict == "undecided" for one in first]]
        for name, rival in RIVALS.items():
            at = rival(left)
            shares = {str(rounds): round(float((at <= rounds).mean()), 4) for rounds in (48, 96, ROUNDS)}
            found[name][f"{100 * change:g} %"] = {"blocks": len(left), **shares}
    return found


def by_looks(ratios: Floats) -> NDArray[np.int64]:
    """The product's rule."""
    at = np.full(len(ratios), ROUNDS + 1)
    for place, rounds in enumerate(look_levels.LOOKS):
        if look_levels.PLANNED_LOOKS[-1] < rounds <= ROUNDS:
            some, levels = ratios[:, :rounds], look_levels.levels_at(place)
            is_called = (_trimmed_p(some) < levels.flip) | (statistics.paired_t_p(some) < levels.t)
            at[(is_called | (statistics.sign_p(some) < levels.sign)) & (at > ROUNDS)] = rounds
    return at


def by_every_round(ratios: Floats) -> NDArray[np.int64]:
    """6 / (π² k²) of the level at the k-th round after the planned ones."""
    at = np.full(len(ratios), ROUNDS + 1)
    for rounds in range(look_levels.PLANNED_LOOKS[-1] + 1, ROUNDS + 1):
        level = LEVEL * 6.0 / (np.pi * (rounds - look_levels.PLANNED_LOOKS[-1])) ** 2
        at[(_trimmed_p(ratios[:, :rounds]) < level) & (at > ROUNDS)] = rounds
    return at


def by_signs(ratios: Floats) -> NDArray[np.int64]:
    """Betting on the signs alone."""
    return _by_bets(np.sign(ratios))


def by_sizes(ratios: Floats) -> NDArray[np.int64]:
    """Betting on sizes, each in medians of those before it, and three of them at most."""
    sizes = np.abs(ratios)
    scales = np.stack([np.median(sizes[:, : max(1, rounds)], axis=1) for rounds in range(ROUNDS)], axis=1)
    # the first of all has no scale yet
    scales[:, 0] = np.inf
    return _by_bets(np.clip(ratios / scales, -flips.TRIMMED_ABOVE, flips.TRIMMED_ABOVE))


RIVALS: dict[str, Rival] = {
    "looks (the product)": by_looks,
    "every round": by_every_round,
    "betting on signs": by_signs,
    "betting on trimmed sizes": by_sizes,
}


def _by_bets(stakes: Floats) -> NDArray[np.int64]:
    """Wealth of a mixture of bets on either side, each a martingale where every sign is a fair coin (Ville, 1939)."""
    wealth = np.zeros(stakes.shape)
    for stake in (*STAKES, *(-one for one in STAKES)):
        gains = stake * stakes - np.log(np.cosh(stake * stakes))
        wealth += np.exp(np.cumsum(gains, axis=1)) / (2 * len(STAKES))
    is_enough = wealth >= 1.0 / LEVEL
    is_enough[:, : look_levels.PLANNED_LOOKS[-1]] = False
    return np.where(is_enough.any(axis=1), is_enough.argmax(axis=1) + 1, ROUNDS + 1)


def _trimmed_p(ratios: Floats) -> Floats:
    return normal_p(np.where(flips.mark_counting_pairs(ratios), ratios, 0.0))


def _called(logs: Floats, *, margin: float, word: str = "") -> int:
    counts = verdicts.count_verdicts(list(np.exp(logs)), margin=margin)
    return counts["slower"] + counts["faster"] if not word else counts["slower"]


if __name__ == "__main__":
    main()
