"""Forecasts when open blocks will be measured, from the blocks ahead of each on the machines that take it.

All pages and replies that say when something begins or ends read a `Forecast`, so that they do not contradict.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import pairwise, takewhile
from math import inf
from typing import NamedTuple, Protocol

from django.db.models import FloatField
from django.db.models.fields.json import KT, KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from farm.base.grouping import group_by
from farm.contract.cells import Budget
from farm.contract.version import name_node_queue
from farm.fleet.models import Lending, Node
from farm.fleet.selectors.nodes import SHUT_OUT
from farm.fleet.states import NodeHealth, NodeState
from farm.rules.planning.estimates import ROUNDS
from farm.rules.planning.plans import PROMISE_FACTOR, max_rounds_to_order
from farm.rules.planning.schedule import Machine, Queued, Span, forecast_spans
from farm.rules.planning.time_left import BlockProgress, block_seconds_left, list_decision_rounds
from farm.runs.models import Attempt, Block, Report
from farm.runs.selectors.minutes import teams_without_minutes
from farm.runs.selectors.queue_order import order_by_priority
from farm.runs.states import BACKGROUND, OPEN_BLOCKS, AttemptState, BlockState, RunState

# how many of the first blocks of the queue a forecast covers, and how many nodes
MAX_BLOCKS = 1000
MAX_NODES = 500
# how many of the newest blocks are compared with their plans, and how many of them a machine needs for a pace of
# its own
MAX_RECENT = 300
MIN_OF_MACHINE = 3
# an overdue block is expected to take this much longer, or this share of its time so far
MIN_LEFT_S = 5.0
OVERDUE_SHARE = 0.1


class Claimable(Protocol):
    """The parts of a block that decide which nodes may take it: its queues, its team, and who uploaded its model."""

    @property
    def target_queues(self) -> Sequence[str]: ...
    @property
    def team(self) -> int: ...
    @property
    def uploader(self) -> int | None: ...


class _Row(NamedTuple):
    pk: int
    run: int
    state: str
    node: int | None
    queues: Sequence[str]
    only_node: int | None
    first_round: int
    max_rounds: int
    leased_at: datetime | None
    team: int
    uploader: int | None
    reason: str
    budget: str
    minutes: float | None
    once_s: float | None
    round_s: float | None
    sustained_s: float | None
    block_timeout_s: float | None

    @property
    def target_queues(self) -> tuple[str, ...]:
        return tuple(self.queues) if self.only_node is None else (name_node_queue(str(self.only_node)),)

    @property
    def planned_s(self) -> float:
        if self.first_round and self.round_s:
            return (self.once_s or 0.0) + (self.max_rounds - self.first_round) * self.round_s
        return 60.0 * (self.minutes or 0.0)


_COLUMNS = (
    *("pk", "run_id", "state", "node_id", "queues", "only_node_id", "first_round", "max_rounds"),
    *("leased_at", "run__team_id", "run__version__uploaded_by_id", "run__reason", "run__budget"),
)
_PLANNED = {
    f"planned_{key}": Cast(KT(f"plan_json__{key}"), FloatField())
    for key in ("minutes", "once_s", "round_s", "sustained_s", "block_timeout_s")
}


class Expected(NamedTuple):
    """The forecast of an open run, in seconds from now."""

    # when its first block begins (0 if one has begun) and its last one ends; None if that cannot be known
    begins_s: float | None
    ends_s: float | None
    # how long its blocks will be measured, in sum
    measured_s: float
    # whether other programs slow its blocks now
    is_slowed: bool = False
    # while another program uses the machine, the run begins and ends at these times at the earliest
    earliest_s: float | None = None
    earliest_end_s: float | None = None


class Forecast:
    """Simulates the queue from one moment to its end. Each of its few queries is made when it is first needed."""

    def __init__(self) -> None:
        self._devices_by_audience: dict[object, frozenset[str]] = {}

    @cached_property
    def now(self) -> datetime:
        return timezone.now()

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The online, active nodes that take blocks now and whose owner may still write, by id, at most MAX_NODES.

        Some of them may be waiting for another program to release their machine.
        """
        columns = ("name", "team", "team__puts_people_first", "owner", "host", "health", "state", "sandbox", "doing")
        online = Node.objects.with_writing_owner().filter(state=NodeState.ONLINE, health=NodeHealth.ACTIVE)
        rows = online.select_related("team").only(*columns, "tags", "owner_tags", "settings_json").order_by("pk")
        return {node.pk: node for node in rows[:MAX_NODES] if node.queues}

    @cached_property
    def spans(self) -> Mapping[int, Span]:
        """When each open block is measured, by block id; blocks without a forecast are left out."""
        return {**forecast_spans(self._queued, self._free_machines), **self._leased_spans}

    @cached_property
    def left_s(self) -> Mapping[int, float]:
        """How many seconds each open block will still be measured, by block id, without the time that it waits.

        For blocks without a forecast, the plan and the usual pace give the time.
        """
        spans = ((row, self.spans.get(row.pk)) for row in self._rows)
        return {
            row.pk: self._pace_of(row) * row.planned_s if span is None else span.ends_s - span.begins_s
            for row, span in spans
        }

    @cached_property
    def _earliest(self) -> Mapping[int, Span]:
        # what `spans` would be if other programs released their machines now
        return {**forecast_spans(self._queued, self._machines), **self._leased_spans} if self._blocked_devices else {}

    def forecast_run(self, run_id: int) -> Expected | None:
        """Forecast a run; None if none of its blocks is open and among the first MAX_BLOCKS of the queue.

        Its begin and end are None if a block has no forecast, or if it would begin at once but all its blocks wait for
        variants or inputs. The earliest times are set only in these cases, while another program uses a machine.
        """
        rows = [row for row in self._rows if row.run == run_id]
        if not rows:
            return None
        measured_s = sum(self.left_s[row.pk] for row in rows)

        # every block has a forecast, and the first one is ready
        spans = [span for row in rows if (span := self.spans.get(row.pk)) is not None]
        begins_s = min((span.begins_s for span in spans), default=0.0)
        is_ready = begins_s or any(row.state != BlockState.WAITING for row in rows)
        if is_ready and len(spans) == len(rows):
            return Expected(begins_s, max(span.ends_s for span in spans), measured_s, any(map(self._is_slowed, rows)))

        # otherwise only the earliest times are known, if other programs use the machines
        earliest = [span for row in rows if (span := self._earliest.get(row.pk)) is not None]
        earliest_s = min((span.begins_s for span in earliest), default=None)
        earliest_end_s = max((span.ends_s for span in earliest), default=None)
        return Expected(None, None, measured_s, earliest_s=earliest_s, earliest_end_s=earliest_end_s)

    def nodes_for_waiting_blocks(self, run_id: int) -> tuple[list[str], int]:
        """Return the sorted names of the online nodes that may take a waiting block of the run, and a number.

        The number says how many of them may take the same block, at most; 0 if no block waits or no node may take one.
        """
        rows = [row for row in self._rows if row.run == run_id and row.state != BlockState.LEASED]
        takers = [{node.name for node in self.nodes.values() if self.may_take(node, row)} for row in rows]
        return sorted(set().union(*takers)), max(map(len, takers), default=0)

    def list_next_blocks(self, node: Node) -> list[tuple[int, Span]]:
        """List the ids of the waiting blocks that are forecast for the node's machine, with times, the earliest first.

        Empty if the node takes no blocks now.
        """
        rows = self._rows if node.may_take_blocks else ()
        waiting = {row.pk for row in rows if row.state != BlockState.LEASED and self.may_take(node, row)}
        mine = [(pk, span) for pk, span in self.spans.items() if span.device == node.device and pk in waiting]
        return sorted(mine, key=lambda pair: pair[1].begins_s)

    def forecast_starts_s(self, like: Mapping[str, Collection[int]]) -> dict[str, float]:
        """Forecast in how many seconds a block begins that a person queues now, behind all waiting blocks.

        `like` maps names of your choice to the ids of open blocks; the new block is taken by the machines that take one
        of these. The result has the same names, except those that no node takes.
        """
        devices = {row.pk: self._devices(row) for row in self._rows}
        imagined = {
            -place: Queued(-place, False, 0.0, frozenset().union(*(devices.get(block, ()) for block in blocks)))
            for place, blocks in enumerate(like.values(), start=1)
        }
        spans = forecast_spans([*self._queued, *imagined.values()], self._free_machines)
        return {name: spans[-place].begins_s for place, name in enumerate(like, start=1) if -place in spans}

    def blocks_without_forecast(self, node: Node) -> list[int]:
        """List the ids of the blocks that wait for a node and have no forecast, in the order of the queue.

        They have none if another program uses the machine, its owner's limits pause it, it is offline, or their team
        has no minutes left.
        """
        open_rows = (row for row in self._rows if row.state != BlockState.LEASED and row.pk not in self.spans)
        return [row.pk for row in open_rows if self.may_take(node, row)]

    @cached_property
    def _rows(self) -> list[_Row]:
        blocks = Block.objects.filter(state__in=OPEN_BLOCKS, run__state=RunState.RUNNING)
        rows = order_by_priority(blocks.annotate(**_PLANNED), people_first=False).values_list(*_COLUMNS, *_PLANNED)
        return [_Row(*row) for row in rows[:MAX_BLOCKS]]

    @cached_property
    def _leased(self) -> list[_Row]:
        return [row for row in self._rows if row.state == BlockState.LEASED]

    @cached_property
    def _queued(self) -> list[Queued]:
        """The blocks that wait for a node, in the order of arrival, without those of teams without minutes left."""
        waiting = [row for row in self._rows if row.state != BlockState.LEASED]
        without_minutes = set(teams_without_minutes()) if waiting else set()
        return [
            Queued(row.pk, row.reason in BACKGROUND, row.planned_s, self._devices(row), self._run_paces.get(row.run))
            for row in waiting
            if row.team not in without_minutes
        ]

    @cached_property
    def _blocked_devices(self) -> set[str]:
        # a node that waits reports another program on its machine, and how long that runs is unknown
        waiting = {node.device for node in self.nodes.values() if node.doing}
        return waiting - {span.device for span in self._leased_spans.values()}

    @cached_property
    def _free_machines(self) -> list[Machine]:
        return [machine for machine in self._machines if machine.device not in self._blocked_devices]

    @cached_property
    def _machines(self) -> list[Machine]:
        free_in_s = {span.device: span.ends_s for span in self._leased_spans.values()}
        return [
            Machine(
                device, free_in_s.get(device, 0.0), self._paces.get(device, self._pace), node.team.puts_people_first
            )
            for device, node in {node.device: node for node in self.nodes.values()}.items()
        ]

    @cached_property
    def _lendings(self) -> set[tuple[int, int]]:
        return set(Lending.objects.in_force().values_list("node", "team"))

    def _devices(self, row: _Row) -> frozenset[str]:
        key = (row.target_queues, row.team, row.uploader)
        if key not in self._devices_by_audience:
            self._devices_by_audience[key] = frozenset(
                node.device for node in self.nodes.values() if self.may_take(node, row)
            )
        return self._devices_by_audience[key]

    def may_take(self, node: Node, row: Claimable) -> bool:
        """Say whether the node may measure the block at all, even if it is busy or paused by its owner now.

        Its health, queues, sandbox, team and lendings decide; its hardware and providers are not compared.
        """
        if node.health in SHUT_OUT or set(row.target_queues).isdisjoint(node.all_queues):
            return False
        is_safe = node.sandbox != "none" or node.owner_id == row.uploader
        return is_safe and (node.team_id == row.team or (node.pk, row.team) in self._lendings)

    @cached_property
    def _leased_spans(self) -> dict[int, Span]:
        """The forecasts of the blocks that online nodes measure now."""
        pairs = ((row, self.nodes.get(row.node or 0)) for row in self._leased)
        return {
            row.pk: Span(0.0, self._left_s(row, node.device), node.device) for row, node in pairs if node is not None
        }

    def _is_slowed(self, row: _Row) -> bool:
        progress, span = self._progress.get(row.pk), self._leased_spans.get(row.pk)
        return progress is not None and span is not None and progress.is_slowed(usual=self._paces.get(span.device, 1.0))

    def _left_s(self, row: _Row, device: str) -> float:
        """Return the seconds until a leased block ends: by the pace of its rounds, or before the first, by its plan."""
        held_s = (self.now - row.leased_at).total_seconds() if row.leased_at else 0.0
        pace, progress = self._pace_of(row, device), self._progress.get(row.pk)
        if progress is None:
            left_s = pace * row.planned_s - held_s
        else:
            left_s = block_seconds_left(progress, slowdown=pace) or progress.after_s - progress.since_s
        return max(MIN_LEFT_S, left_s if left_s > 0 else OVERDUE_SHARE * held_s)

    @cached_property
    def _progress(self) -> dict[int, BlockProgress]:
        """The progress of leased blocks whose first check was reported."""
        reports = Report.objects.filter(
            attempt__block__in=[row.pk for row in self._leased],
            attempt__state=AttemptState.LEASED,
            kind__in=("check", "trace", "round"),
        ).order_by("pk")
        moments = group_by(reports.values_list("attempt__block", "kind", "received_at"), lambda report: report[0])
        return {
            row.pk: self._make_progress(row, [(kind, received_at) for _, kind, received_at in row_reports])
            for row in self._leased
            if (row_reports := moments.get(row.pk))
        }

    def _make_progress(self, row: _Row, row_reports: Sequence[tuple[str, datetime]]) -> BlockProgress:
        """Return the progress of a leased block under its current order, from the reports of its current attempt."""
        # the first round begins with the last check or trace before it
        rounds_at = [received_at for kind, received_at in row_reports if kind == "round"]
        before = [received_at for kind, received_at in takewhile(lambda report: report[0] != "round", row_reports)][-1:]
        (_, begun_at), last_at = row_reports[0], [*before, *rounds_at][-1]

        # when the block may end: a continued block only after all its rounds
        once_s, round_s, rounds = row.once_s or 0.0, row.round_s or 0.0, ROUNDS[Budget(row.budget)]
        max_rounds, after_s = row.max_rounds - row.first_round, 0.0
        ends = [max_rounds]
        if not row.first_round:
            ends = list_decision_rounds(Budget(row.budget), minimum=rounds.minimum, maximum=max_rounds)
            after_s = row.planned_s - once_s - rounds.usual * round_s if row.sustained_s else 0.0

        return BlockProgress(
            planned_s=row.planned_s,
            once_s=once_s,
            round_s=round_s,
            rounds=len(rounds_at),
            ends=ends,
            replaced=max_rounds_to_order(max_rounds),
            promised_s=PROMISE_FACTOR * (once_s + max_rounds * round_s) or inf,
            min_rounds=max(0, rounds.minimum - row.first_round),
            limit_s=row.block_timeout_s or inf,
            after_s=after_s,
            begun_s=(self.now - begun_at).total_seconds(),
            rounds_s=[(later - earlier).total_seconds() for earlier, later in pairwise([*before, *rounds_at])],
            since_s=(self.now - last_at).total_seconds(),
        )

    def _pace_of(self, row: _Row, device: str = "") -> float:
        return self._run_paces.get(row.run) or self._paces.get(device, self._pace)

    @cached_property
    def _run_paces(self) -> dict[int, float]:
        progress = [(row.run, self._progress[row.pk].slowdown) for row in self._leased if row.pk in self._progress]
        paces = group_by(((run, pace) for run, pace in progress if pace), lambda pair: pair[0])
        return {run: max(pace for _, pace in pairs) for run, pairs in paces.items()}

    @cached_property
    def _pace(self) -> float:
        return self._paces.get("", 1.0)

    @cached_property
    def _paces(self) -> dict[str, float]:
        """How many times longer than planned the newest blocks took, by machine, and for all machines under ""."""
        complete = Attempt.objects.filter(state=AttemptState.DONE, first_round=0, reason_code="")
        of_nodes = complete.filter(node__in=self.nodes).order_by("-pk")
        planned = of_nodes.annotate(minutes=Cast(KeyTextTransform("minutes", "block__plan_json"), FloatField()))
        recent: dict[str, list[tuple[float, float]]] = {}
        rows = planned.values_list("node", "claimed_at", "ended_at", "minutes")
        for node, claimed_at, ended_at, minutes in rows[:MAX_RECENT]:
            if ended_at and minutes and node is not None:
                for device in ("", self.nodes[node].device):
                    recent.setdefault(device, []).append(((ended_at - claimed_at).total_seconds(), 60.0 * minutes))
        return {
            device: sum(taken_s for taken_s, _ in pairs) / sum(planned_s for _, planned_s in pairs)
            for device, pairs in recent.items()
            if len(pairs) >= MIN_OF_MACHINE
        }
