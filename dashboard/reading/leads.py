"""Table entries of a run's lead, its most important result: verdict, change with interval, and what was compared.

A watch measures a finding again before it alerts. `confirmed` is the lead of that second run, or an empty lead.
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
    """Load the leads of confirming runs, by the number of the run that each of them confirmed. Runs that were not
    confirmed are left out. Without a run of a watch the database is not queried."""
    watched = [run.pk for run in runs if run is not None and run.reason == RunReason.WATCH]
    return confirmed_leads(watched) if watched else {}


def is_news(lead: KeyResult) -> bool:
    """Whether a lead reports that a model changed: it compares releases or versions, with any verdict, or says that
    outputs are wrong or ran on other providers. Comparisons of precisions or batches are no news."""
    return lead.axis in ("runtime", "model") or lead.verdict in (WRONG, ELSEWHERE)


def make_verdict_entry(lead: KeyResult) -> Entry:
    """Make the table entry of the verdict; empty without one. Only the verdicts of news are coloured as losses or
    gains, those of other comparisons are quiet."""
    entry = verdict_entry(lead.verdict) if lead.verdict else Entry()
    if entry.sign is not None and lead.axis and not is_news(lead):
        return replace(entry, sign=replace(entry.sign, tone="quiet"))
    return entry


def make_change_entry(lead: KeyResult, confirmed: KeyResult = NO_LEAD) -> Entry:
    """Make the table entry of the change, or of the latency where there is no change; empty without either. Where a
    second run confirmed the change, its figures are shown and the first run's change follows."""
    shown = prefer_confirmed(lead, confirmed)
    if shown.ratio is not None:
        return Entry(shown.change.text, shown.ratio, soft="" if shown == lead else f"{lead.change.amount} at first")
    if lead.p50_ms is not None:
        soft = "CPU time" if lead.quantity == "processor" else ""
        return Entry(f"{numbers.milliseconds(lead.p50_ms, lead.p50_ci_ms)} ms", soft=soft)
    return Entry()


def make_interval_entry(lead: KeyResult, confirmed: KeyResult = NO_LEAD) -> Entry:
    """Make the table entry of the interval of the figure that make_change_entry shows, with the level and rounds of a
    change on hover where its level is known. Empty where there is no figure or no interval."""
    shown = prefer_confirmed(lead, confirmed)
    if shown.ratio is not None and shown.low is not None:
        rounds = numbers.counted(shown.rounds, "round")
        title = f"{numbers.percent(shown.level)}, {rounds}" if shown.level else ""
        return Entry(shown.change.interval, shown.low, title=title)
    if shown.p50_ms is not None:
        return Entry(numbers.plus_minus(shown.p50_ms, shown.p50_ci_ms))
    return Entry()


def prefer_confirmed(lead: KeyResult, confirmed: KeyResult) -> KeyResult:
    """Choose the confirming lead if both leads have a ratio for the same step with the same verdict, else `lead`."""
    is_same = (confirmed.step, confirmed.verdict) == (lead.step, lead.verdict)
    return confirmed if is_same and confirmed.ratio is not None and lead.ratio is not None else lead


def make_subject_entry(lead: KeyResult, shared: Collection[str] = ()) -> Entry:
    """Make the table entry that says what was compared. The settings follow that are not `shared` by all rows, then the
    reason why there are no figures, then what did not finish. All settings are shown on hover."""
    settings = list_settings(lead)
    own_settings = ", ".join(setting for setting in settings if setting not in shared)
    reason = lead.reason if lead.ratio is None and lead.p50_ms is None else ""
    endings = [part for part in (reason.rstrip(".") if lead.unfinished else reason, lead.unfinished) if part]
    soft = ". ".join(filter(None, (own_settings, *endings)))
    return Entry(lead.step, soft=soft, title=". ".join(filter(None, (", ".join(settings), *endings))))


def list_settings(lead: KeyResult) -> list[str]:
    """List the settings that both sides of the lead's comparison share, then `on NODE` where its node is known."""
    return [*(lead.where.split(", ") if lead.where else []), *([f"on {lead.node}"] if lead.node else [])]


def find_shared_settings(leads: Iterable[KeyResult]) -> list[str]:
    """Find the settings that every lead either has or compares, so that a table need not repeat them in each row. Leads
    without settings do not count. Empty where fewer than two leads have settings."""
    settings_of_leads = [(lead, list_settings(lead)) for lead in leads]
    known = [(settings, {*settings, *lead.step.split(" → ")}) for lead, settings in settings_of_leads if settings]
    if len(known) < 2:
        return []
    every = dict.fromkeys(setting for settings, _ in known for setting in settings)
    return [setting for setting in every if all(setting in parts for _, parts in known)]
