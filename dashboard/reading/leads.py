"""Table entries of what a run leads with: its verdict, its change with the interval, and what was compared.

A watch measures a finding again before it alerts. `confirmed` is what that second run leads with, else an empty lead.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from farm.alerts.selectors.origins import confirmed_leads
from farm.rules.presenting.key_results import KeyResult
from farm.rules.presenting.tables import Entry, verdict_entry
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import ELSEWHERE, WRONG
from farm.runs.states import RunReason

if TYPE_CHECKING:
    from farm.runs.models import Run

NO_LEAD = KeyResult()


def read_lead(run: "Run | None") -> KeyResult:
    return KeyResult.model_validate(run.lead) if run is not None and run.lead else NO_LEAD


def load_confirmed_leads(runs: Iterable["Run | None"]) -> dict[int, KeyResult]:
    """Load what the confirming runs lead with, by the number of the run that each of them confirmed; runs that were
    not confirmed are left out. Without a run of a watch the database is not queried."""
    watched = [run.pk for run in runs if run is not None and run.reason == RunReason.WATCH]
    return confirmed_leads(watched) if watched else {}


def is_news(lead: KeyResult) -> bool:
    """Whether a lead says how a model changed: it compares releases or versions, or outputs are wrong or ran on other
    providers. A comparison of precisions or batches is a choice, and no news."""
    return lead.axis in ("runtime", "model") or lead.verdict in (WRONG, ELSEWHERE)


def make_verdict_entry(lead: KeyResult) -> Entry:
    """Make the table entry of the verdict, empty without one. Only news has the colour of a regression or a gain."""
    entry = verdict_entry(lead.verdict) if lead.verdict else Entry()
    if entry.sign is not None and lead.axis and not is_news(lead):
        return replace(entry, sign=replace(entry.sign, tone="quiet"))
    return entry


def make_change_entry(lead: KeyResult, confirmed: KeyResult = NO_LEAD) -> Entry:
    """Make the table entry of the change, or of the latency where a run has a single cell; empty without either. A
    confirmed change is followed by the one that was found first."""
    shown = prefer_confirmed(lead, confirmed)
    if shown.ratio is not None:
        return Entry(shown.change.text, shown.ratio, soft="" if shown == lead else f"first {lead.change.amount}")
    if lead.p50_ms is not None:
        soft = "CPU time" if lead.quantity == "processor" else ""
        return Entry(f"{numbers.milliseconds(lead.p50_ms, lead.p50_ci_ms)} ms", soft=soft)
    return Entry()


def make_interval_entry(lead: KeyResult, confirmed: KeyResult = NO_LEAD) -> Entry:
    """Make the table entry of the interval of what make_change_entry shows, with its level and rounds on hover; empty
    where that is empty or has no interval."""
    shown = prefer_confirmed(lead, confirmed)
    if shown.ratio is not None and shown.low is not None:
        rounds = numbers.counted(shown.rounds, "round")
        title = f"{numbers.percent(shown.level)}, {rounds}" if shown.level else ""
        return Entry(shown.change.interval, shown.low, title=title)
    if shown.p50_ms is not None:
        return Entry(numbers.plus_minus(shown.p50_ms, shown.p50_ci_ms))
    return Entry()


def prefer_confirmed(lead: KeyResult, confirmed: KeyResult) -> KeyResult:
    """Choose the confirming lead where it has a ratio for the same step with the same verdict, else the first lead."""
    is_same = (confirmed.step, confirmed.verdict) == (lead.step, lead.verdict)
    return confirmed if is_same and confirmed.ratio is not None and lead.ratio is not None else lead


def make_subject_entry(lead: KeyResult, shared: Collection[str] = ()) -> Entry:
    """Make the table entry of what was compared. It is followed by the settings that are not `shared` by all rows, the
    reason why there are no figures, and what failed; all settings are shown on hover."""
    settings = list_settings(lead)
    own_settings = ", ".join(setting for setting in settings if setting not in shared)
    reason = lead.reason if lead.ratio is None and lead.p50_ms is None else ""
    endings = [part for part in (reason.rstrip(".") if lead.unfinished else reason, lead.unfinished) if part]
    soft = ". ".join(filter(None, (own_settings, *endings)))
    return Entry(lead.step, soft=soft, title=". ".join(filter(None, (", ".join(settings), *endings))))


def list_settings(lead: KeyResult) -> list[str]:
    """List the settings that both sides of the leading comparison share, and `on NODE` where a node measured them."""
    return [*(lead.where.split(", ") if lead.where else []), *([f"on {lead.node}"] if lead.node else [])]


def find_shared_settings(leads: Iterable[KeyResult]) -> list[str]:
    """Find the settings that every lead has or compares, so that a table need not repeat them in each row. Leads
    without settings do not count; empty where fewer than two have any."""
    settings_of_leads = [(lead, list_settings(lead)) for lead in leads]
    known = [(settings, {*settings, *lead.step.split(" → ")}) for lead, settings in settings_of_leads if settings]
    if len(known) < 2:
        return []
    every = dict.fromkeys(setting for settings, _ in known for setting in settings)
    return [setting for setting in every if all(setting in parts for _, parts in known)]
