"""The history of a distribution's releases: when each appeared, who watches them, and how their rounds ended."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Release, Watch, WatchRound
from farm.alerts.selectors.alerts import list_later_findings
from farm.alerts.states import RoundState

# how many alerts and watches a history has at most
ALERTS, WATCHES = 200, 50


class IndexEntry(NamedTuple):
    """A release as the index lists it. `yanked_because` is empty where the index gave no reason."""

    seen_at: datetime
    is_yanked: bool
    yanked_because: str


class RaisedAlert(NamedTuple):
    """An alert in a history: its id, the name of its model, and its state.

    `found_in` is the release of the alert where a round found the change again in another one; otherwise empty.
    """

    pk: int
    model: str
    state: str
    found_in: str = ""


@dataclass(frozen=True)
class History:
    """The history of a distribution; all but `watches` is by version. Releases that the index dropped are included."""

    index_entries: Mapping[str, IndexEntry]
    # how many rounds had each outcome
    outcomes: Mapping[str, Mapping[str, int]]
    # alerts whose change was measured with the version, also again, or began with it; the newest first
    alerts: Mapping[str, Sequence[RaisedAlert]]
    # the active ones, the oldest first
    watches: Sequence[Watch]


def read_history(user: Anyone, distribution: str) -> History:
    """Read the history of a distribution as far as the user may see it.

    It has the ALERTS newest alerts and the WATCHES oldest active watches. Outcomes are of judged rounds, without those
    that compare versions of a model. The index's entries are the same for every user.
    """
    releases = Release.objects.filter(distribution=distribution)
    rounds = WatchRound.objects.filter(
        watch__in=Watch.objects.visible_to(user), watch__distribution=distribution, base=None
    )
    watches = Watch.objects.visible_to(user).filter(distribution=distribution, is_active=True)
    alerts: dict[str, list[RaisedAlert]] = defaultdict(list)
    rows = Alert.objects.visible_to(user).filter(distribution=distribution).order_by("-pk")
    raised = list(rows.values_list("pk", "model__name", "state", "bad", "first_bad")[:ALERTS])
    later_releases: dict[int, set[str]] = defaultdict(set)
    for alert, release, _ in list_later_findings([pk for pk, *_ in raised]):
        later_releases[alert].add(release)
    for pk, model, state, bad, first in raised:
        for version in {first or bad, bad}:
            alerts[version].append(RaisedAlert(pk, model, state))
        for version in later_releases[pk] - {first or bad, bad}:
            alerts[version].append(RaisedAlert(pk, model, state, found_in=first or bad))
    outcomes: dict[str, dict[str, int]] = defaultdict(dict)
    judged = rounds.filter(state=RoundState.JUDGED).order_by()
    for version, outcome, count in judged.values_list("new", "outcome").annotate(count=Count("pk")):
        outcomes[version][outcome] = count
    return History(
        index_entries={row.version: IndexEntry(row.seen_at, row.is_yanked, row.yanked_because) for row in releases},
        outcomes=outcomes,
        alerts=alerts,
        watches=list(watches.only("pk", "name", "reference", "schedule").order_by("pk")[:WATCHES]),
    )
