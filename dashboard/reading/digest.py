"""The digest on a page: the same figures as channels are told, with the alerts and rounds behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils import timezone

from dashboard.reading import alerts
from dashboard.reading.facts import Fact
from farm.alerts.services import digests
from farm.rules.presenting.tables import Column, Entry, Number, Prose, Table, counted, moment, verdict_entry
from farm.rules.wording import numbers

if TYPE_CHECKING:
    from farm.accounts.models import Team
    from farm.alerts.models import Alert, WatchRound

DAYS = (1, 7, 30)
# newest rounds and alerts that are shown
SHOWN = 15
ROUND_COLUMNS: tuple[Column["WatchRound"], ...] = (
    Column("Judged", lambda one: moment(one.judged_at)),
    Column("Watch", lambda one: Entry(one.watch.name, href=reverse("dashboard:watch", args=[one.watch_id]))),
    Column("Model", lambda one: Entry(str(one.version))),
    Column("Releases", lambda one: Entry(f"{one.old} → {one.new}", is_name=True)),
    Column("Outcome", lambda one: verdict_entry(one.outcome)),
    Number("pairs", lambda one: counted(one.compared), "comparisons that were judged"),
    Prose("Result", lambda one: Entry(numbers.unbroken(one.sentence))),
    Column("Run", lambda one: _run(one)),
)


@dataclass(frozen=True)
class Digest:
    """One team's digest. `basis`: what the expected number of false alerts rests on; `more`: rounds that are not
    shown."""

    team: str
    sentence: str
    basis: str
    facts: Sequence[Fact]
    rounds: Table
    more: int
    opened: Table
    unsettled: int


def days_of(text: str) -> int:
    """How many days back; a week unless the address names another length that is offered."""
    return next((days for days in DAYS if str(days) == text), 7)


def since(days: int) -> datetime:
    return timezone.now() - timedelta(days=days)


def told(team: "Team", facts: digests.Digest, *, rounds: Iterable["WatchRound"], opened: Iterable["Alert"]) -> Digest:
    """A digest for its page, with its newest rounds and alerts."""
    pairs = numbers.counted(facts["null_pairs"], "A/A pair")
    are = "is" if facts["null_pairs"] == 1 else "are"
    table = Table.of(f"rounds-{team.pk}", "Rounds of watches", ROUND_COLUMNS, rounds)
    judged = sum(facts["rounds"].values())
    return Digest(
        team=team.name,
        sentence=digests.sentence_of(facts),
        basis=f"The rate rests on {pairs} of the team’s nodes."
        if facts["null_pairs"] >= digests.ENOUGH_PAIRS
        else f"{pairs} of the team’s nodes {are} too few to say more than the rule’s own level.",
        facts=_facts(facts),
        rounds=table,
        more=max(0, judged - len(table.rows)),
        opened=replace(alerts.table(opened), id=f"opened-{team.pk}"),
        unsettled=facts["open"],
    )


def headline(shown: Sequence[Digest], days: int) -> str:
    """What came of the watches, over all teams."""
    new = sum(len(one.opened.rows) for one in shown)
    rounds = sum(len(one.rounds.rows) + one.more for one in shown)
    alerts_words = numbers.counted(new, "new alert") if new else "No new alerts"
    return (
        f"{alerts_words} from {numbers.counted(rounds, 'round')} of watches in the last {numbers.counted(days, 'day')}"
    )


def _facts(facts: digests.Digest) -> list[Fact]:
    outcomes = [f"{count} {verdict_entry(name).value}" for name, count in facts["rounds"].items() if count]
    return [
        Fact("Rounds", str(sum(facts["rounds"].values()))),
        Fact("Outcomes", ", ".join(outcomes) or "none"),
        Fact("Comparisons", str(facts["comparisons"])),
        Fact("New alerts", str(len(facts["opened"]))),
        Fact("Open now", str(facts["open"])),
        Fact("Marked as false positives", str(facts["invalid"])),
    ]


def _run(one: "WatchRound") -> Entry:
    if one.run_id is None:
        return Entry("removed")
    return Entry(f"run {one.run_id}", one.run_id, href=reverse("dashboard:run", args=[one.run_id]))
