"""Runs as people find them, and how far they are."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, QuerySet
from django.utils import timezone

from farm.accounts.refusals import Missing
from farm.accounts.selectors import Anyone
from farm.fleet.models import Node
from farm.fleet.states import NodeState
from farm.rules.cells.numbers import counted
from farm.runs.models import Block, Event, Report, Run
from farm.runs.selectors.evidence import COUNTED
from farm.runs.states import ENDED_BLOCKS, BlockState, RunState

# the pace of a run is that of its last rounds; and so many nodes say what they do
PACE_ROUNDS = 5
MOST_DOING = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `cells` and `blocks` count by status and state; an open cell's status is `open`.

    `sentence` says how it ended, `headline` what it found; `minutes` is what the plan expected; `revision` changes
    whenever anything of the run has changed.
    """

    id: int
    state: str
    outcome: str
    sentence: str
    headline: str
    revision: int
    cells: dict[str, int]
    blocks: dict[str, int]
    rounds: int
    rounds_most: int
    minutes: float
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    model: str
    version: int
    requested_by: str
    # what nodes say that they do for it, or what keeps them from it
    doing: tuple[str, ...] = ()
    # seconds a round took lately, and since the last one; None: fewer than two were measured
    round_s: float | None = None
    since_round_s: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will come by itself."""
        return self.state == RunState.FINISHED

    @property
    def cells_ended(self) -> int:
        """How many cells have a status, whichever it is."""
        return sum(self.cells.values()) - self.cells.get("open", 0)

    @property
    def minutes_left(self) -> float | None:
        """What is not measured yet: as planned, and at the pace of its rounds once there are some; None at its end."""
        if self.is_finished:
            return None
        if self.round_s is None:
            return self.minutes * (1.0 - self.share)
        left_s = self.round_s * max(0, self.rounds_most - self.rounds) - min(self.since_round_s, self.round_s)
        return max(0.0, left_s) / 60.0

    @property
    def words(self) -> str:
        """Where the work is, in words: blocks by state and rounds."""
        if self.is_finished:
            return ""
        busy, total = self.blocks.get(BlockState.LEASED, 0), sum(self.blocks.values())
        ended = sum(self.blocks.get(state, 0) for state in ENDED_BLOCKS)
        of = counted(total, "block")
        where = f"{busy} of {of} being measured" if busy else f"{ended} of {of} done"
        return "; ".join((f"{where}, round {self.rounds} of {self.rounds_most}", *self.doing))

    @property
    def share(self) -> float:
        """How much of the work is done, 0–1, by rounds."""
        if self.is_finished:
            return 1.0
        return min(1.0, self.rounds / self.rounds_most) if self.rounds_most else 0.0


def runs_visible_to(user: Anyone) -> QuerySet[Run]:
    """Runs of the user's teams, newest first, with their version."""
    return Run.objects.visible_to(user).select_related("version__model", "requested_by", "team")


def runs_listed(user: Anyone) -> QuerySet[Run]:
    """The same for lists: without what is large and belongs to pages of their own, matrices and inspections."""
    return runs_visible_to(user).defer("matrix", "version__inspection", "version__problem")


def run(user: Anyone, run_id: int, *, is_light: bool = False) -> Run:
    """One run; a light one is without what is large. Raises Missing when there is none that the user may see."""
    rows = runs_listed(user) if is_light else runs_visible_to(user)
    found = rows.filter(pk=run_id).first()
    if found is None:
        raise no_run(run_id)
    return found


def no_run(run_id: int) -> Missing:
    """The same for a run of others as for none."""
    return Missing(f"There is no run {run_id} that you can access.", hint="List yours with `onnxfarm status`.")


def can_write_run(user: Anyone, run: Run) -> bool:
    """Whether the user may cancel or continue the run."""
    return Run.objects.writable_by(user).filter(pk=run.pk).exists()


def address_of(run: Run) -> str:
    return f"{settings.PUBLIC_URL}/runs/{run.pk}/"


def revision(run: Run) -> str:
    """What identifies the run's content now: an ETag."""
    number = Run.objects.values_list("revision", flat=True).get(pk=run.pk)
    return f'"run-{run.pk}-{number}"'


def progress(run: Run) -> Progress:
    """How far the run is now, in six small queries."""
    run = Run.objects.select_related("version__model", "requested_by").get(pk=run.pk)
    cells = dict(run.cells.values_list("status").annotate(Count("pk")).order_by())
    blocks = list(run.blocks.values_list("state", "rounds", "max_rounds"))
    round_s, since_round_s = _pace(run)
    return Progress(
        id=run.pk,
        state=run.state,
        outcome=run.outcome,
        sentence=run.sentence,
        headline=run.headline,
        revision=run.revision,
        cells={status or "open": count for status, count in cells.items()},
        blocks=dict(Counter(state for state, _, _ in blocks)),
        rounds=sum(rounds for _, rounds, _ in blocks),
        rounds_most=sum(_expected(state, rounds, most) for state, rounds, most in blocks),
        minutes=run.minutes,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        model=run.version.model.name,
        version=run.version.number,
        requested_by=run.requested_by.username if run.requested_by else "",
        doing=_doing(run),
        round_s=round_s,
        since_round_s=since_round_s,
    )


def _doing(run: Run) -> tuple[str, ...]:
    """What the nodes at work say; where none works on an open run, what keeps the team's own nodes waiting."""
    if run.state == RunState.FINISHED:
        return ()
    states = dict(run.blocks.filter(state__in=(BlockState.LEASED, BlockState.QUEUED)).values_list("node_id", "state"))
    at_work = [node for node, state in states.items() if state == BlockState.LEASED]
    if not states:
        return ()
    # what a node says while it measures another run is no reason for this one to wait
    idle = Node.objects.filter(team=run.team_id).exclude(blocks__state=BlockState.LEASED)
    nodes = Node.objects.filter(pk__in=at_work) if at_work else idle
    told = nodes.filter(state=NodeState.ONLINE).exclude(doing="").order_by("pk").values_list("name", "doing")
    return tuple(f"{name}: {doing}" for name, doing in told[:MOST_DOING])


def _pace(run: Run) -> tuple[float | None, float]:
    """Seconds from round to round of the attempts that count so far, and since the last one."""
    if run.state == RunState.FINISHED:
        return None, 0.0
    rounds = Report.objects.filter(attempt__block__run=run, attempt__state__in=COUNTED, kind="round")
    latest = list(rounds.order_by("-pk").values_list("received_at", flat=True)[:PACE_ROUNDS])
    if len(latest) < 2:
        return None, 0.0
    round_s = (latest[0] - latest[-1]).total_seconds() / (len(latest) - 1)
    return round_s, (timezone.now() - latest[0]).total_seconds()


def events(run: Run, *, after: int = 0) -> QuerySet[Event]:
    """The run's log, oldest first, from after the event with this number on."""
    return run.events.filter(pk__gt=after).select_related("block")


def blocks_on(nodes: Iterable[Node]) -> dict[int, Block]:
    """What each of these nodes measures now, by the node's number."""
    leased = Block.objects.filter(state=BlockState.LEASED, node__in=list(nodes)).defer("plan_json")
    return {block.node_id: block for block in leased if block.node_id is not None}


def _expected(state: str, rounds: int, most: int) -> int:
    # rounds that replace dropped pairs may come on top of those the budget has
    return rounds if state not in (BlockState.WAITING, BlockState.QUEUED, BlockState.LEASED) else max(rounds, most)
