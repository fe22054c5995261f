"""When queued blocks will probably be measured: what is ahead of each on the machines that take it, at their pace."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import FloatField
from django.db.models.fields.json import KT, KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from farm.contract.version import node_queue
from farm.fleet.models import Lending, Node
from farm.fleet.states import NodeHealth, NodeState
from farm.rules.planning.turns import Machine, Queued, Span, forecast
from farm.runs.models import Attempt, Block
from farm.runs.selectors.minutes import teams_without_minutes
from farm.runs.selectors.turns import in_turn
from farm.runs.states import OF_THE_FARM, OPEN_BLOCKS, AttemptState, BlockState, RunState

# nobody is told by what stands behind so many blocks, or what more nodes than these would take
MAX_BLOCKS = 1000
MAX_NODES = 500
# blocks whose plan is compared with what they took, and how many of one machine tell its pace
MAX_RECENT = 300
MIN_OF_MACHINE = 3
# a block that should have ended by now still takes so long
MIN_LEFT_S = 5.0


class _Row(NamedTuple):
    pk: int
    run: int
    number: int
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
    minutes: float | None
    once_s: float | None
    round_s: float | None

    @property
    def asked(self) -> tuple[str, ...]:
        """The queues that it waits in."""
        return tuple(self.queues) if self.only_node is None else (node_queue(str(self.only_node)),)

    @property
    def planned_s(self) -> float:
        if self.first_round and self.round_s:
            return (self.once_s or 0.0) + (self.max_rounds - self.first_round) * self.round_s
        return 60.0 * (self.minutes or 0.0)


_COLUMNS = (
    *("pk", "run_id", "number", "state", "node_id", "queues", "only_node_id", "first_round", "max_rounds"),
    *("leased_at", "run__team_id", "run__version__uploaded_by_id", "run__reason"),
)
_PLANNED = {f"planned_{key}": Cast(KT(f"plan_json__{key}"), FloatField()) for key in ("minutes", "once_s", "round_s")}


class Expected(NamedTuple):
    """Seconds until a run's first block begins, 0 where one has, and until its last one ends; and how many of them its
    blocks are measured, at their machines' pace."""

    begins_s: float
    ends_s: float
    measured_s: float


class Forecast:
    """The queue as it is now, played through to its end. A few queries, made when they are needed."""

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """Nodes that are there and take blocks, also those that wait while another node of their machine measures one.
        When another program lets go of a node's machine nobody can tell."""
        columns = ("name", "team", "team__puts_people_first", "owner", "host", "health", "state", "sandbox", "doing")
        there = Node.objects.vouched().filter(state=NodeState.ONLINE, health=NodeHealth.ACTIVE).select_related("team")
        rows = list(there.only(*columns, "tags", "owner_tags", "settings_json").order_by("pk")[:MAX_NODES])
        at_work = {row.node for row in self._leased}
        busy = {node.device for node in rows if node.pk in at_work}
        return {node.pk: node for node in rows if node.queues and (node.device in busy or not node.doing)}

    @cached_property
    def spans(self) -> Mapping[int, Span]:
        """When each open block begins and ends, by its number; without those that no node here takes."""
        queued = [row for row in self._rows if row.state != BlockState.LEASED and row.team not in self._stopped]
        held = {row.pk: Span(0.0, self._left_s(row, node), node.device) for row, node in self._held}
        free_in_s = {span.device: span.ends_s for span in held.values()}
        waiting = [Queued(row.pk, row.reason in OF_THE_FARM, row.planned_s, self._devices(row)) for row in queued]
        machines = {
            node.device: Machine(
                node.device, free_in_s.get(node.device, 0.0), self._pace_of(node.device), node.team.puts_people_first
            )
            for node in self.nodes.values()
        }
        return {**forecast(waiting, list(machines.values())), **held}

    def of_run(self, run_id: int) -> Expected | None:
        """None where nothing of it is open, or somebody has to come for it first."""
        found = [self.spans.get(row.pk) for row in self._rows if row.run == run_id]
        known = [span for span in found if span is not None]
        if not known or len(known) < len(found):
            return None
        measured_s = sum(span.ends_s - span.begins_s for span in known)
        return Expected(min(span.begins_s for span in known), max(span.ends_s for span in known), measured_s)

    def next_on(self, device: str) -> list[tuple[int, Span]]:
        """The blocks that come next on a machine, by number, in their order."""
        leased = {row.pk for row in self._leased}
        mine = [(pk, span) for pk, span in self.spans.items() if span.device == device and pk not in leased]
        return sorted(mine, key=lambda found: found[1].begins_s)

    def unforeseen(self, node: Node) -> list[int]:
        """The blocks that wait for a node and nobody can tell how long, by number, as they came: another program has
        its machine, it is not here, or their team has no minutes left."""
        open_rows = (row for row in self._rows if row.state != BlockState.LEASED and row.pk not in self.spans)
        return [row.pk for row in open_rows if self._is_for(node, row)]

    @cached_property
    def _rows(self) -> list[_Row]:
        blocks = Block.objects.filter(state__in=OPEN_BLOCKS, run__state=RunState.RUNNING)
        rows = in_turn(blocks.annotate(**_PLANNED), people_first=False).values_list(*_COLUMNS, *_PLANNED)
        return [_Row(*row) for row in rows[:MAX_BLOCKS]]

    @cached_property
    def _leased(self) -> list[_Row]:
        return [row for row in self._rows if row.state == BlockState.LEASED]

    @cached_property
    def _stopped(self) -> set[int]:
        return set(teams_without_minutes())

    @cached_property
    def _lent(self) -> set[tuple[int, int]]:
        return set(Lending.objects.in_force().values_list("node", "team"))

    @cached_property
    def _known(self) -> dict[object, frozenset[str]]:
        return {}

    def _devices(self, row: _Row) -> frozenset[str]:
        key = (row.asked, row.team, row.uploader)
        if key not in self._known:
            self._known[key] = frozenset(node.device for node in self.nodes.values() if self._is_for(node, row))
        return self._known[key]

    def _is_for(self, node: Node, row: _Row) -> bool:
        if set(row.asked).isdisjoint(node.queues):
            return False
        is_walled = node.sandbox != "none" or node.owner_id == row.uploader
        return is_walled and (node.team_id == row.team or (node.pk, row.team) in self._lent)

    @cached_property
    def _held(self) -> list[tuple[_Row, Node]]:
        """What is measured now by nodes that are here."""
        return [(row, node) for row in self._leased if (node := self.nodes.get(row.node or 0)) is not None]

    def _left_s(self, row: _Row, node: Node) -> float:
        held_s = (timezone.now() - row.leased_at).total_seconds() if row.leased_at else 0.0
        return max(MIN_LEFT_S, row.planned_s * self._pace_of(node.device) - held_s)

    def _pace_of(self, device: str) -> float:
        return self._paces.get(device) or self._paces.get("", 1.0)

    @cached_property
    def _paces(self) -> dict[str, float]:
        """How many times longer than planned the newest blocks of each machine took, and those of all of them ("")."""
        ended = Attempt.objects.filter(node__in=self.nodes, state=AttemptState.DONE, first_round=0).order_by("-pk")
        planned = ended.annotate(minutes=Cast(KeyTextTransform("minutes", "block__plan_json"), FloatField()))
        recent: dict[str, list[tuple[float, float]]] = {}
        for node, claimed, over, minutes in planned.values_list("node", "claimed_at", "ended_at", "minutes")[
            :MAX_RECENT
        ]:
            if over and minutes and node is not None:
                for device in ("", self.nodes[node].device):
                    recent.setdefault(device, []).append(((over - claimed).total_seconds(), 60.0 * minutes))
        return {device: _ratio(pairs) for device, pairs in recent.items() if len(pairs) >= MIN_OF_MACHINE}


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(spent for spent, _ in pairs) / sum(planned for _, planned in pairs)
