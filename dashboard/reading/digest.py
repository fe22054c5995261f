"""The digest on a page: the same words as channels are told."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils import timezone

from dashboard import numbers
from dashboard.tables import Entry, Head, Table, verdict_entry
from farm.alerts.services import digests

if TYPE_CHECKING:
    from farm.accounts.models import Team

DAYS = (1, 7, 30)
HEADS = (Head("Outcome"), Head("rounds", is_number=True))


@dataclass(frozen=True)
class Digest:
    """One team's digest. `basis`: what the expected number of false alerts rests on."""

    team: str
    sentence: str
    basis: str
    rounds: Table
    opened: list[tuple[str, str]]


def days_of(text: str) -> int:
    """How many days back; a week unless the address names another length that is offered."""
    return next((days for days in DAYS if str(days) == text), 7)


def since(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)


def told(team: "Team", facts: digests.Digest) -> Digest:
    """A digest for its page."""
    counts = {outcome: count for outcome, count in facts["rounds"].items() if count}
    rows = [(verdict_entry(outcome), Entry(str(count), count)) for outcome, count in counts.items()]
    pairs = numbers.count(facts["null_pairs"], "A/A pair")
    are = "is" if facts["null_pairs"] == 1 else "are"
    return Digest(
        team=team.name,
        sentence=digests.sentence_of(facts),
        basis=f"The rate rests on {pairs} of the team’s nodes."
        if facts["null_pairs"] >= digests.ENOUGH_PAIRS
        else f"{pairs} of the team’s nodes {are} too few to say more than the rule’s own level.",
        rounds=Table(f"rounds-{team.pk}", "Rounds by outcome", HEADS, rows),
        opened=[(reverse("dashboard:alert", args=[one["id"]]), one["sentence"]) for one in facts["opened"]],
    )
