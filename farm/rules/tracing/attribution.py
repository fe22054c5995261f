"""Finds which operators explain a change: the traces of two arms, joined by the model's own nodes.

Runtimes fuse differently: one executes as a single operator what the other executes as three. The model's own nodes are
therefore joined into the smallest groups that both sides execute completely, and the groups' times are compared.
Times are µs per inference, medians over traces of separate processes, since a single trace misleads. Where every round
traced a few inferences, the times of the rounds are used instead, and each group gets a verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from farm.base.grouping import group_by
from farm.contract.document_comparisons import OperatorChange
from farm.contract.reports import Operator, TraceReport
from farm.rules.tracing.executions import MIN_TRACES, join_groups

if TYPE_CHECKING:
    # the client uses this module without numpy
    from farm.rules.comparing.comparisons import Comparison

INTERVAL_LEVEL = 0.9
# A change that is a smaller part of the whole time than this is not explained.
MIN_CHANGE = 0.002
# An operator type that explains less than this share of a change is not named.
NAMED_SHARE = 0.1


class GroupHead(NamedTuple):
    """The executed operator that a group is named after, and the other own nodes of the group."""

    operator: Operator
    other_nodes: tuple[str, ...]


class NodeTime(NamedTuple):
    """One of the model's own nodes, and its time per inference in one launch."""

    node: str
    time_us: float


@dataclass(frozen=True, slots=True)
class NodeChange:
    """How the time of one group of the model's own nodes changed between two arms.

    The group is named by `node`; `covers` are its other nodes. `spans_zero` is False for a change without an interval.
    """

    node: str
    covers: tuple[str, ...]
    # the executed operator that took the most time of the group
    op_type: str
    provider: str
    baseline_us: float
    candidate_us: float
    # the median difference over paired traces, with its interval at 90 % or more; without interval where an arm has
    # fewer than five traces
    moved_us: float
    change_low_us: float | None = None
    change_high_us: float | None = None
    # its part of the whole change, negative where it goes the other way; None where it cannot be computed reliably
    share: float | None = None
    # the verdict on the group's times in paired rounds; None where rounds were not traced, or are too few
    figures: "Comparison | None" = None

    @property
    def spans_zero(self) -> bool:
        return self.change_low_us is not None and self.change_low_us < 0 < (self.change_high_us or 0.0)


@dataclass(frozen=True, slots=True)
class TypeChange:
    """The sums over all groups of one executed operator type; `share` is None unless every group has one."""

    op_type: str
    nodes: int
    baseline_us: float
    candidate_us: float
    moved_us: float
    share: float | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Node changes, the largest first, and how many traces of each arm they rest on."""

    traces: int
    nodes: tuple[NodeChange, ...] = ()


def attribute_traces(baseline: Sequence[TraceReport], candidate: Sequence[TraceReport]) -> Attribution:
    """Return the change of every group of own nodes between two arms, from their traces in order of trace round.

    Where one arm has more traces than the other, the last ones of that arm are left out.
    """
    traces = min(len(baseline), len(candidate))
    if traces == 0:
        return Attribution(traces=0)
    olds, news = baseline[:traces], candidate[:traces]
    # nodes executed together on either side belong together
    group_of = join_groups(*(trace.operators for trace in (*olds, *news)))
    sides = ([sum_group_times(trace.operators, group_of) for trace in side] for side in (olds, news))
    return attribute_times(find_group_heads([*olds, *news], group_of), *sides)


def attribute_times(
    heads: Mapping[str, GroupHead], olds: Sequence[Mapping[str, float]], news: Sequence[Mapping[str, float]]
) -> Attribution:
    """Return the change of every group from its times in µs, by the group's name.

    `olds` and `news` have one mapping for each process, equally many of either arm; `heads` are as find_group_heads
    returns them. The largest change comes first. No change has a share where there are fewer than MIN_TRACES, where the
    whole change is no more than MIN_CHANGE of the time, or where traces disagree by more than the whole change.
    """
    changes = [
        _make_node_change(head, [times.get(group, 0.0) for times in olds], [times.get(group, 0.0) for times in news])
        for group, head in heads.items()
    ]
    whole_us = sum(change.moved_us for change in changes)
    total_us = sum(max(change.baseline_us, change.candidate_us) for change in changes)
    # on a busy machine, traces may disagree by more than the change that is to be explained
    doubtful_us = sum(abs(change.moved_us) for change in changes if change.spans_zero)
    if len(olds) >= MIN_TRACES and abs(whole_us) > max(MIN_CHANGE * total_us, doubtful_us):
        changes = [replace(change, share=change.moved_us / whole_us) for change in changes]
    return Attribution(len(olds), tuple(sorted(changes, key=lambda change: (-abs(change.moved_us), change.node))))


def sum_group_times(operators: Iterable[Operator | NodeTime], group_of: Mapping[str, str]) -> dict[str, float]:
    """Return the time of each group in one process, in µs; groups without an operator are missing.

    `group_of` maps each node to its group. Raises KeyError for an operator whose node is not in it.
    """
    times: dict[str, float] = {}
    for operator in operators:
        group = group_of[operator.node]
        times[group] = times.get(group, 0.0) + operator.time_us
    return times


def find_group_heads(traces: Sequence[TraceReport], group_of: Mapping[str, str]) -> dict[str, GroupHead]:
    """Return the head of each group: the operator with the most time in any of these traces.

    Groups that none of them executed are missing. Raises KeyError for an operator whose node is not in `group_of`.
    """
    members: dict[str, set[str]] = {}
    for node, group in group_of.items():
        members.setdefault(group, set()).add(node)
    heads: dict[str, Operator] = {}
    for trace in traces:
        for operator in trace.operators:
            group = group_of[operator.node]
            if group not in heads or operator.time_us > heads[group].time_us:
                heads[group] = operator
    return {group: GroupHead(head, tuple(sorted(members[group] - {head.node}))) for group, head in heads.items()}


def _make_node_change(head: GroupHead, olds: list[float], news: list[float]) -> NodeChange:
    differences = [new - old for old, new in zip(olds, news, strict=True)]
    low, high = _find_interval(differences)
    return NodeChange(
        node=head.operator.node,
        covers=head.other_nodes,
        op_type=head.operator.op_type,
        provider=head.operator.provider,
        baseline_us=median(olds),
        candidate_us=median(news),
        moved_us=median(differences),
        change_low_us=low,
        change_high_us=high,
    )


def _find_interval(differences: list[float]) -> tuple[float | None, float | None]:
    """Return the order statistics that contain the median difference at 90 % or more (the sign test, inverted)."""
    count = len(differences)
    if count < MIN_TRACES:
        return None, None
    ordered = sorted(differences)
    # The two-sided p of the sign test for each rank. scipy.stats has it too, but would cost every web process 50 MB.
    misses = [2.0 * sum(comb(count, k) for k in range(outside + 1)) / 2**count for outside in range(count // 2)]
    rank = max(outside + 1 for outside, miss in enumerate(misses) if miss <= 1.0 - INTERVAL_LEVEL)
    return ordered[rank - 1], ordered[count - rank]


def group_by_type(changes: Iterable[NodeChange | OperatorChange]) -> list[TypeChange]:
    """Sum changes of own nodes by executed operator type, the largest change first."""
    groups = group_by(changes, lambda change: change.op_type)
    type_changes = [_sum_type(op_type, members) for op_type, members in groups.items()]
    return sorted(type_changes, key=lambda change: (-abs(change.moved_us), change.op_type))


def find_largest_share(changes: Iterable[NodeChange | OperatorChange]) -> TypeChange | None:
    shared = [change for change in group_by_type(changes) if change.share is not None]
    return max(shared, key=lambda change: change.share or 0.0, default=None)


def _sum_type(op_type: str, changes: Sequence[NodeChange | OperatorChange]) -> TypeChange:
    shares = [change.share for change in changes if change.share is not None]
    return TypeChange(
        op_type=op_type,
        nodes=len(changes),
        baseline_us=sum(change.baseline_us for change in changes),
        candidate_us=sum(change.candidate_us for change in changes),
        moved_us=sum(change.moved_us for change in changes),
        share=sum(shares) if len(shares) == len(changes) else None,
    )
