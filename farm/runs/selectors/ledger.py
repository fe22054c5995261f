"""Reads the ledger of a node: for whom it measured, and for how many minutes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, DurationField, ExpressionWrapper, F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from farm.accounts.selectors import Anyone
from farm.base.refusals import Invalid
from farm.fleet.models import Node, NodeEvent
from farm.fleet.selectors import can_manage_node
from farm.fleet.states import NodeEventKind
from farm.runs.models import Attempt
from farm.runs.states import AttemptState

DAYS: Final = 30
MAX_DAYS: Final = 366
MAX_INSTALLED: Final = 100


@dataclass(frozen=True, slots=True)
class Work:
    """The runs, blocks and minutes that a node measured for a person of a team, by the reason of the runs.

    Runs and minutes include attempts without a result; `blocks` counts only blocks that were reported or settled.
    `person` is empty if a deleted user asked for the runs, and `reason` is empty for runs that a person asked for.
    """

    team: str
    person: str
    reason: str
    runs: int
    blocks: int
    minutes: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """The work of a node since a time, with sums over it; `seconds` is a whole number.

    `work` begins with the entry of most minutes. `installed` holds the newest log lines on installed and removed
    runtimes, MAX_INSTALLED at most.
    """

    since: datetime
    work: list[Work]
    installed: list[NodeEvent]

    @property
    def blocks(self) -> int:
        return sum(work.blocks for work in self.work)

    @property
    def seconds(self) -> int:
        return sum(round(60.0 * work.minutes) for work in self.work)

    @property
    def minutes(self) -> float:
        return sum(work.minutes for work in self.work)


def ledger(user: Anyone, node: Node, *, days: int = DAYS) -> Ledger | None:
    """Sum up the work of a node in the last days; None for a user who does not manage the node.

    Attempts count if they were claimed in these days; those in progress count with their time up to now. Raises
    Invalid for a number of days out of range.
    """
    if not 1 <= days <= MAX_DAYS:
        raise Invalid(f"A ledger covers 1 to {MAX_DAYS} days, not {days}.", code="days")
    if not can_manage_node(user, node):
        return None
    since = timezone.now() - timedelta(days=days)
    installed = node.events.filter(kind=NodeEventKind.RUNTIMES, at__gte=since)[:MAX_INSTALLED]
    return Ledger(since=since, work=_sum_up_work(node, since), installed=list(installed))


def _sum_up_work(node: Node, since: datetime) -> list[Work]:
    duration = ExpressionWrapper(Coalesce(F("ended_at"), timezone.now()) - F("claimed_at"), DurationField())
    attempts = Attempt.objects.filter(node=node, claimed_at__gte=since).order_by()
    rows = attempts.values_list("block__run__team__name", "block__run__requested_by__username", "block__run__reason")
    # attempts that were lost, failed or cancelled, or still go on, took time but measured no block
    blocks = Count("block", distinct=True, filter=Q(state__in=(AttemptState.REPORTED, AttemptState.DONE)))
    groups = rows.annotate(runs=Count("block__run", distinct=True), blocks=blocks, duration=Sum(duration))
    work = [
        # whole seconds, so that rows add up to their sum wherever they are shown
        Work(team, person or "", reason, runs, blocks, round(duration.total_seconds()) / 60.0)
        for team, person, reason, runs, blocks, duration in groups
    ]
    return sorted(work, key=lambda entry: -entry.minutes)
