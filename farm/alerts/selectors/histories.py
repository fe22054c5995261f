"""The history of a distribution's releases: when each appeared, who watches them, and how their rounds ended."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, QuerySet

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Release, Watch, WatchRound
from farm.alerts.states import RoundState

# how many of the newest alerts, and how many watches, a history has
ALERTS, WATCHES = 200, 50


class Known(NamedTuple):
    """A release as the index has it. `yanked_because`: empty where the index gave no reason."""

    seen_at: datetime
    is_yanked: bool
    yanked_because: str


class Raised(NamedTuple):
    """An alert about a release."""

    pk: int
    model: str
    state: str


@dataclass(frozen=True)
class History:
    """The history of a distribution. By version: `known`, what the index says of it; `outcomes`, how many rounds had
    each outcome; `alerts`, those of a change that was measured with it, or that began with it. `watches`: the active
    ones, the oldest first."""

    known: Mapping[str, Known]
    outcomes: Mapping[str, Mapping[str, int]]
    alerts: Mapping[str, Sequence[Raised]]
    watches: Sequence[Watch]


def read_history(user: Anyone, distribution: str) -> History:
    """Read the history of a distribution as far as the user may see it."""
    releases = Release.objects.filter(distribution=distribution)
    rounds = WatchRound.objects.filter(
        watch__in=Watch.objects.visible_to(user), watch__distribution=distribution, base=None
    )
    watches = Watch.objects.visible_to(user).filter(distribution=distribution, is_active=True)
    alerts: dict[str, list[Raised]] = defaultdict(list)
    raised = Alert.objects.visible_to(user).filter(distribution=distribution).order_by("-pk")
    for pk, model, state, bad, first in raised.values_list("pk", "model__name", "state", "bad", "first_bad")[:ALERTS]:
        for version in {first or bad, bad}:
            alerts[version].append(Raised(pk, model, state))
    return History(
        {release.version: Known(release.seen_at, release.is_yanked, release.yanked_because) for release in releases},
        _outcomes(rounds),
        alerts,
        list(watches.only("pk", "name", "reference", "schedule").order_by("pk")[:WATCHES]),
    )


def _outcomes(rounds: QuerySet[WatchRound]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    judged = rounds.filter(state=RoundState.JUDGED).order_by()
    for version, outcome, count in judged.values_list("new", "outcome").annotate(count=Count("pk")):
        found[version][outcome] = count
    return found
