"""Computes times, shares and verdicts of the model's own nodes from the launches of a comparison's rounds.

A launch that also traces a few inferences sends one time for each own node, sorted by the node's name. The arm's first
trace says which operators were executed for each node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farm.contract.reports import TraceReport
from farm.rules.comparing.pooled import pool_rounds
from farm.rules.tracing.attribution import Attribution, NodeTime, attribute_times, find_group_heads, sum_group_times
from farm.rules.tracing.executions import join_groups
from farm.rules.tracing.node_verdicts import Pair, judge_nodes

# µs per inference of each own node, in the order of `list_own_nodes`
Times = Sequence[float]


@dataclass(frozen=True)
class TracedArm:
    """One arm: its first trace, and the times of its launches in the rounds that both arms have.

    `sum_by_group` returns the µs of each group of own nodes, for each of these rounds in order.
    """

    first: TraceReport
    rounds: Sequence[Times]

    def sum_by_group(self, group_of: Mapping[str, str]) -> list[dict[str, float]]:
        names = list_own_nodes(self.first)
        return [sum_group_times(map(NodeTime, names, times), group_of) for times in self.rounds]


def list_own_nodes(trace: TraceReport) -> list[str]:
    """Return the names of a trace's own nodes, sorted; another trace of the same arm has the same."""
    return sorted({operator.node for operator in trace.operators})


def attribute_rounds(
    old: TracedArm, new: TracedArm, *, margin: float, rounds_per_pair: int, is_judged: bool = True
) -> Attribution:
    """Return the change of every group of own nodes between two arms, with verdicts on those that can be judged.

    The times of `rounds_per_pair` rounds are pooled into one pair, as for the cells. Without `is_judged` nothing gets a
    verdict.
    """
    firsts = [old.first, new.first]
    group_of, neighbours = group_own_nodes(firsts)
    heads = find_group_heads(firsts, group_of)
    olds, news = old.sum_by_group(group_of), new.sum_by_group(group_of)
    whole = attribute_times(heads, olds, news)
    if not is_judged:
        return whole
    pairs = {group: pool_rounds(_pair_times(group, olds, news), per_pair=rounds_per_pair) for group in heads}
    judged = judge_nodes(pairs, neighbours=neighbours, margin=margin)
    figures = {
        heads[group].operator.node: replace(
            comparison,
            rounds_used=comparison.rounds_used * rounds_per_pair,
            set_aside=comparison.set_aside * rounds_per_pair,
        )
        for group, comparison in judged.items()
    }
    return replace(whole, nodes=tuple(replace(node, figures=figures.get(node.node)) for node in whole.nodes))


def _pair_times(group: str, olds: Sequence[Mapping[str, float]], news: Sequence[Mapping[str, float]]) -> list[Pair]:
    # without a time in every launch there are no pairs, since the ratio would mean nothing
    pairs = [(old.get(group, 0.0), new.get(group, 0.0)) for old, new in zip(olds, news, strict=True)]
    return pairs if all(old > 0.0 and new > 0.0 for old, new in pairs) else []


def group_own_nodes(traces: Sequence[TraceReport]) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Return the group of each own node, and for each group its neighbours: those that it reads from or that read it.

    A group without neighbours is missing from the second mapping.
    """
    group_of = join_groups(*(trace.operators for trace in traces))
    reads = {
        (group_of[operator.node], group_of[node])
        for trace in traces
        for operator in trace.operators
        for node in operator.reads
        if node in group_of
    }
    groups: dict[str, set[str]] = {}
    for group, other in reads:
        if group != other:
            groups.setdefault(group, set()).add(other)
            groups.setdefault(other, set()).add(group)
    return group_of, {group: frozenset(others) for group, others in groups.items()}
