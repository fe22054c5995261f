"""Finds why an open run waits, and when it will be measured. Only outlooks of `outlook_of` include a forecast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from farm.contract.version import name_node_queue
from farm.fleet.models import Node, Trial
from farm.fleet.selectors.nodes import list_unavailable_nodes, name_or_removed, newest_waits
from farm.fleet.states import NodeState, TrialState
from farm.rules.planning.time_left import describe_time_left
from farm.rules.presenting.idle_reasons import Waiting, describe_unavailable_node, explain_idle_run
from farm.runs.models import Block, Run
from farm.runs.selectors.forecasts import Expected, Forecast
from farm.runs.selectors.minutes import explain_no_minutes
from farm.runs.states import BlockState

NODE_PREFIX = name_node_queue("")
# how many reasons for waiting are named
MAX_NAMED = 2


@dataclass(frozen=True, slots=True)
class Outlook:
    """Why an open run waits, and when it will be measured. This depends on nodes and other runs too.

    `begins_s`, `earliest_s` and `ends_s` are seconds from now. They are None while a cell is being measured, and if
    they cannot be known. `is_slowed` is False without a forecast. `shown` holds what pages show, to find changes.
    """

    # why no cell of it is being measured, and since when; empty and None while one is
    idle_reason: str = ""
    since: datetime | None = None
    # None if the run was not forecast, or none of its blocks is open
    expected: Expected | None = None

    @property
    def begins_s(self) -> float | None:
        return self.expected.begins_s if self.expected and self.idle_reason else None

    @property
    def earliest_s(self) -> float | None:
        return self.expected.earliest_s if self.expected and self.idle_reason else None

    @property
    def ends_s(self) -> float | None:
        return self.expected.ends_s if self.expected and self.idle_reason else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the run ends; while it waits, the seconds that its blocks take in sum. None if not forecast.

        The sum also stands for an end that cannot be known.
        """
        if self.expected is None:
            return None
        return self.expected.measured_s if self.idle_reason else self.expected.ends_s or self.expected.measured_s

    @property
    def is_slowed(self) -> bool:
        return self.expected is not None and self.expected.is_slowed

    @property
    def words_left(self) -> str:
        """The time left in words, such as `time left: about 3 min`; empty without a forecast."""
        if self.left_s is None:
            return ""
        flags = {"is_measuring": not self.idle_reason, "is_slowed": self.is_slowed}
        return describe_time_left(self.left_s, begins_s=self.begins_s, least_s=self.earliest_s, **flags)

    @property
    def shown(self) -> tuple[object, ...]:
        # everything that a page shows of the outlook
        return self.idle_reason, self.since, self.words_left


def outlook_of(run_id: int, *, forecast: Forecast | None = None) -> Outlook:
    return replace(outlook_without_forecast(run_id), expected=(forecast or Forecast()).forecast_run(run_id))


class _IdleBlock(NamedTuple):
    state: str
    queues: list[str]
    only_node: int | None
    hardware: str
    since: datetime | None

    @property
    def target_queues(self) -> list[str]:
        return self.queues if self.only_node is None else [name_node_queue(str(self.only_node))]


def outlook_without_forecast(run_id: int) -> Outlook:
    """Read why an open run waits; the Outlook is empty if a block is being measured or none waits.

    `since` is when the first queued block was queued; for a run that only prepares blocks, when it was created.
    """
    rows = Block.objects.filter(run=run_id).order_by("number")
    columns = rows.values_list("state", "queues", "only_node_id", "hardware", "queued_at")
    blocks = [_IdleBlock(*row) for row in columns]
    queued = [block for block in blocks if block.state == BlockState.QUEUED]
    preparing = [block for block in blocks if block.state == BlockState.WAITING]
    if any(block.state == BlockState.LEASED for block in blocks) or not (queued or preparing):
        return Outlook()
    run = Run.objects.select_related("team", "version__uploaded_by").defer("matrix").get(pk=run_id)
    if not queued:
        pending = Trial.objects.filter(pk__in=run.cells.values("trial"), state=TrialState.PENDING)
        trials = [trial.words for trial in pending.select_related("node").order_by("pk")[:MAX_NAMED]]
        return Outlook(explain_idle_run(Waiting(preparing=len(preparing), trials=trials)), run.created_at)
    since = min((block.since for block in queued if block.since is not None), default=run.created_at)
    return Outlook(explain_idle_run(_describe_waiting(run, queued, preparing=len(preparing))), since)


def _describe_waiting(run: Run, queued: Sequence[_IdleBlock], *, preparing: int) -> Waiting:
    # the nodes that may take the blocks
    queues = {name for block in queued for name in block.target_queues}
    serving = Node.objects.serving(run.team, uploader=run.version.uploaded_by).defer("log_tail").order_by("pk")
    nodes = [node for node in serving if not queues.isdisjoint(node.queues)]
    online = [node for node in nodes if node.state == NodeState.ONLINE]
    unavailable = {} if online else dict(list_unavailable_nodes(run.team, uploader=run.version.uploaded_by))
    fitting = [node for node in unavailable if not queues.isdisjoint(node.all_queues)]

    # the machines of online nodes that measure something now
    devices = {node.device for node in online}
    leased = Block.objects.filter(state=BlockState.LEASED, device__in=devices).select_related("run", "node")
    measured = {block.device: block for block in leased.defer("plan_json", "run__matrix").order_by("pk")}
    busy = [_describe_measuring(measured[device], run) for device in sorted(devices & measured.keys())]

    # what the other nodes wait for; what a measuring node says is not a reason to wait
    free = [node for node in online if node.device not in measured]
    waits = newest_waits(free)
    reasons = {node.device: f"{node.name}: {waits[node.device]}" for node in reversed(free) if node.doing}

    bound = [int(name.removeprefix(NODE_PREFIX)) for name in queues if name.startswith(NODE_PREFIX)]
    return Waiting(
        used_up_minutes=explain_no_minutes(run.team),
        preparing=preparing,
        queued=len(queued),
        obstacles=[*reversed(reasons.values())][:MAX_NAMED],
        busy=[] if free else busy[:MAX_NAMED],
        nodes=len(online),
        offline=[f"{node.name} ({node.last_heard})" for node in nodes if node.state != NodeState.ONLINE][:MAX_NAMED],
        bound_nodes=_describe_bound_nodes(bound, unavailable) if not online and len(bound) == len(queues) else (),
        unavailable=[describe_unavailable_node(node.name, unavailable[node]) for node in fitting[:MAX_NAMED]],
        hardware=sorted({block.hardware for block in queued}),
        team=run.team.name,
    )


def _describe_bound_nodes(node_ids: Sequence[int], unavailable: Mapping[Node, str]) -> list[str]:
    """Name each of MAX_NAMED nodes with the reason why it takes no block now."""
    nodes = Node.objects.filter(pk__in=node_ids).defer("log_tail").order_by("pk")[:MAX_NAMED]
    return [
        f"{node.name} ({unavailable.get(node) or node.health})"
        if node.state == NodeState.ONLINE
        else f"{node.name} (offline, {node.last_heard})"
        for node in nodes
    ]


def _describe_measuring(block: Block, run: Run) -> str:
    """Write `bench-1 has been measuring run 12 since 07:12 UTC`, without the number of another team's run."""
    name = f"run {block.run_id}" if block.run.team_id == run.team_id else "a run of another team"
    since = f" since {block.leased_at:%H:%M} UTC" if block.leased_at else ""
    return f"{name_or_removed(block.node)} has been measuring {name}{since}"
