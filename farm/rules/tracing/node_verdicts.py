"""Judges which of a model's own nodes changed, by the test of pairs that judges cells, corrected for many nodes.

A round that traces a few inferences of both arms gives each group of own nodes a pair of times. A group is judged only
once, over all rounds, since the verdicts on cells decide when to stop. Each change then has to pass three checks:

many nodes    Benjamini-Hochberg over all judged groups, at a level at which a block rarely names a wrong group;
the clock     the profiler counts whole microseconds, so a change must be at least one;
moved time    the group and its neighbours that changed in the other direction must, summed, still have changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from farm.rules.comparing import multiplicity, verdicts
from farm.rules.comparing.comparisons import Comparison
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.wording.numbers import counted, percent
from farm.rules.wording.vocabulary import is_change, opposite_of

Pair = tuple[float, float]
Neighbours = Mapping[str, frozenset[str]]

# durations in a profile are whole microseconds, cut off
TICK_US = 1.0
# Shorter times in both arms are mostly the rounding of the clock.
MIN_US = 5.0
# The groups with the most time are judged; an interval takes milliseconds to compute.
MAX_JUDGED = 256
# The level of Benjamini-Hochberg. About twice this share of the blocks with one changed node name a second, unchanged
# one (docs/results.md, "Operators").
LEVEL = 0.005


def judge_nodes(pairs: Mapping[str, Sequence[Pair]], *, neighbours: Neighbours, margin: float) -> dict[str, Comparison]:
    """Return the verdict on each group of own nodes that can be judged, by the group's name.

    `pairs` are (baseline, candidate) µs per inference, in order of rounds. `neighbours` are the groups that a group
    reads from, or that read from it. Left out are groups with fewer than eight pairs, groups whose times are too short
    for the clock, and all but the MAX_JUDGED groups with the most time.
    """
    enough = {node: blocks for node, blocks in pairs.items() if len(blocks) >= PLANNED_LOOKS[0]}
    judgeable = {node: blocks for node, blocks in enough.items() if _max_median_us(blocks) >= MIN_US}
    longest = sorted(judgeable, key=lambda node: -_max_median_us(judgeable[node]))[:MAX_JUDGED]
    if not longest:
        return {}
    alone = _judge_blocks([judgeable[node] for node in longest], margin=margin)
    holds = multiplicity.benjamini_hochberg([figures.p_total for figures in alone], level=LEVEL)
    judged = {
        node: _correct_verdict(figures, judgeable[node], is_held=held, among=len(longest))
        for node, figures, held in zip(longest, alone, holds, strict=True)
    }
    return {
        node: _withdraw_if_moved(node, judged, judgeable, neighbours=neighbours.get(node, frozenset()), margin=margin)
        for node in judged
    }


def _max_median_us(pairs: Sequence[Pair]) -> float:
    return max(_medians_us(pairs))


def _medians_us(pairs: Sequence[Pair]) -> tuple[float, float]:
    return median(old for old, _ in pairs), median(new for _, new in pairs)


def _judge_blocks(blocks: Sequence[Sequence[Pair]], *, margin: float) -> list[Comparison]:
    rounds = max(look for look in PLANNED_LOOKS if look <= len(blocks[0]))
    return verdicts.judge_many(blocks, margin=margin, looks=(rounds,))


def _correct_verdict(figures: Comparison, pairs: Sequence[Pair], *, is_held: bool, among: int) -> Comparison:
    """Withdraw the verdict where the number of nodes, or the clock's whole microseconds, may explain the change."""
    old_us, new_us = _medians_us(pairs)
    if figures.verdict == "equal":
        is_seen = figures.margin * old_us >= TICK_US
        return figures if is_seen else _withdraw(figures, "The profiler's clock, in whole µs, cannot tell it so well.")
    if not is_change(figures.verdict):
        return figures
    if abs(new_us - old_us) < TICK_US:
        return _withdraw(figures, f"Alone it would be {figures.verdict}, by less than the profiler's clock can tell.")
    if is_held:
        return figures
    return _withdraw(
        figures,
        f"Alone it would be {figures.verdict}; among {counted(among, 'operator')} it may be chance (Benjamini-Hochberg "
        f"at {percent(LEVEL)}).",
    )


def _withdraw_if_moved(
    node: str,
    judged: Mapping[str, Comparison],
    pairs: Mapping[str, Sequence[Pair]],
    *,
    neighbours: frozenset[str],
    margin: float,
) -> Comparison:
    """Make the verdict on a node undecided where its neighbours make up for its change."""
    figures = judged[node]
    if not is_change(figures.verdict):
        return figures
    opposite = opposite_of(figures.verdict)
    others = sorted(neighbour for neighbour in neighbours & judged.keys() if judged[neighbour].verdict == opposite)
    if not others:
        return figures
    together = [
        (sum(old for old, _ in members), sum(new for _, new in members))
        for members in zip(*(pairs[part] for part in (node, *others)), strict=True)
    ]
    if _judge_blocks([together], margin=margin)[0].verdict == figures.verdict:
        return figures
    return _withdraw(
        figures, f"Time moved between neighbours: {', '.join(others[:3])} became {opposite}, and together they did not."
    )


def _withdraw(figures: Comparison, reason: str) -> Comparison:
    return replace(figures, verdict="undecided", rounds_needed=None, reason=reason)
