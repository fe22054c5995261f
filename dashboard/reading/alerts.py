"""Alerts as a list: grouped under the release that brought them, each in one line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from dashboard import numbers, words
from dashboard.words import Sign, kind_of
from farm.rules.runtimes.order import release_order

if TYPE_CHECKING:
    from farm.alerts.models import Alert

BROKEN = "What the farm could not measure"
# as farm.rules.changes.watching orders findings: wrong before failed before slower
ORDER = ("parity", "failed", "slower", "placement", "session", "first", "memory")


@dataclass(frozen=True)
class Row:
    """One alert. `state` is `snoozed` for one that nobody wants to hear of now; `because` may be empty."""

    alert: "Alert"
    state: str
    kinds: Sequence[Sign]
    because: str
    where: str
    is_open: bool
    may_write: bool


@dataclass(frozen=True)
class Group:
    """Alerts under one release."""

    title: str
    rows: Sequence[Row]


def groups(alerts: Iterable["Alert"], *, writable: Iterable[int] = ()) -> list[Group]:
    """Alerts under their releases, the newest release first; what could not be measured stands apart, at the top.

    `writable`: the teams in which the reader may change alerts, by number.
    """
    teams = set(writable)
    ordered = sorted(alerts, key=_place)
    return [
        Group(title, [_row(alert, may_write=alert.team_id in teams) for alert in rows])
        for title, rows in groupby(ordered, key=_title)
    ]


def _title(alert: "Alert") -> str:
    return words.runtime_in_words(alert.release) if alert.node else BROKEN


def _place(alert: "Alert") -> tuple[bool, str, tuple[int, ...], str, int]:
    release = release_order(alert.first_bad or alert.bad)
    newest_first = tuple(-part for part in release.release)
    return (bool(alert.node), alert.distribution, newest_first, _title(alert), -alert.pk)


def _row(alert: "Alert", *, may_write: bool) -> Row:
    state = state_of(alert)
    return Row(
        alert=alert,
        state=state,
        kinds=[kind_of(kind) for kind in kinds_of(alert)],
        because=because(alert),
        where=alert.node or "no node",
        is_open=alert.state == "open",
        may_write=may_write,
    )


def state_of(alert: "Alert") -> str:
    """The alert's state; `snoozed` for an unsettled one that is silent."""
    return "snoozed" if alert.state in ("open", "acknowledged") and alert.is_snoozed else str(alert.state)


def kinds_of(alert: "Alert") -> list[str]:
    """What kinds of change it has, the gravest first; those that are still there, unless none is."""
    symptoms = list(alert.symptoms.all())
    left = [one for one in symptoms if not one.resolved_in] or symptoms
    return sorted({one.kind for one in left}, key=ORDER.index)


def because(alert: "Alert") -> str:
    """Which operator a change of latency comes from; empty where no trace says it."""
    return next((one.explanation for one in alert.symptoms.all() if one.explanation), "")


def headline(counts: Mapping[str, int]) -> str:
    """How much has to be looked at, in one sentence."""
    first = numbers.count(counts["open"], "open alert") if counts["open"] else "No open alert"
    others = [f"{counts['snoozed']} snoozed"] if counts["snoozed"] else []
    if counts["infra"]:
        others.append(f"{counts['infra']} where the farm could not measure")
    return f"{first}; {numbers.listed(others)}" if others else first
