"""Why a run was started that no person asked for, and what the two sides of an alert's evidence differ in."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Find, Investigation, Symptom, WatchRound
from farm.alerts.states import InvestigationState, RoundOutcome
from farm.base.refusals import Missing, require_row
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import fusions
from farm.rules.presenting.leads import Lead
from farm.rules.wording.numbers import counted
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.selectors.runs import shown_states
from farm.runs.states import RunReason, RunState


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a run was started. `text`: in a sentence. `watch`, `alert`, `find`: the number of the one it belongs to; all
    are None where that was removed."""

    text: str
    watch: int | None = None
    alert: int | None = None
    find: int | None = None


def explain_origin(run: Run) -> Origin | None:
    """Explain why the farm started a run; None where a person asked for it. One query."""
    if run.reason == RunReason.ASKED:
        return None
    if run.reason in (RunReason.BISECTION, RunReason.WORK_AROUND):
        return _explain_search(run)
    if run.reason == RunReason.FIND:
        rows = Find.objects.filter(version=run.version_id).only("run", "steps").order_by("-pk")
        number = next((row.pk for row in rows if run.pk in (row.run_id, *(s["run"] for s in row.steps))), None)
        return Origin("Started to find the settings to ship.", find=number)
    found = WatchRound.objects.filter(Q(run=run) | Q(confirming=run)).select_related("watch").first()
    if found is None:
        return Origin("Started by a watch that has since been removed.")
    text = f"Started by watch “{found.watch.name}”: {found.step}."
    if run.reason == RunReason.CONFIRMATION:
        text = f"Started automatically to confirm a finding of watch “{found.watch.name}” in a fresh block."
    elif found.outcome == RoundOutcome.ALERT and found.confirming_id is not None:
        text = f"{text} Run {found.confirming_id}, a fresh block, confirms: {found.sentence}"
    return Origin(text, watch=found.watch_id)


def confirmed_leads(runs_of_watches: Iterable[int]) -> dict[int, Lead]:
    """Find what the fresh block leads with that confirmed what a run found, by the number of that run. One query."""
    rows = WatchRound.objects.filter(run__in=list(runs_of_watches), outcome=RoundOutcome.ALERT).order_by("pk")
    known = rows.exclude(confirming__lead=None).values_list("run", "confirming__lead")
    return {run: Lead.model_validate(lead) for run, lead in known}


def _explain_search(run: Run) -> Origin:
    # the run of a finished step is named in a JSON list, which no index covers
    rows = Investigation.objects.filter(alert__model=run.version.model_id).only("alert", "run", "steps").order_by("-pk")
    alert = next((row.alert_id for row in rows if run.pk in (row.run_id, *(s.get("run") for s in row.steps))), None)
    what = "the first bad release" if run.reason == RunReason.BISECTION else "a work-around"
    of = f" of alert {alert}" if alert is not None else ""
    return Origin(f"Started automatically to find {what}{of}.", alert=alert)


def list_graph_changes(symptom: Symptom) -> list[str]:
    """List in sentences, the most important first, how the graphs that ran on the two sides differ. Empty where the run
    traced neither or was removed."""
    if symptom.run is None:
        return []
    try:
        old, new = (runs.cell_document(symptom.run, name) for name in (symptom.baseline, symptom.cell))
    except Missing:
        return []
    operators = Comparison.model_validate(symptom.comparison).operators if symptom.comparison else []
    moved = [({operator.node, *operator.covers}, operator.moved_us) for operator in operators]
    return fusions.describe_graph_changes(old, new, moved)


def activity_of_search(search: Investigation) -> str:
    """Its state; of one that has a run under way, what goes on in that: measuring only while a node measures."""
    if search.state != InvestigationState.MEASURING or search.run is None or search.run.state == RunState.FINISHED:
        return str(search.state)
    return shown_states([search.run])[search.run.pk]


def describe_search(search: Investigation) -> str:
    """Say what it found, or else how far it is."""
    if search.sentence:
        return search.sentence
    done = counted(len(search.steps), "step") + " measured"
    if search.state != InvestigationState.MEASURING:
        return f"{done}."
    does = "is being measured" if activity_of_search(search) == "measuring" else "waits to be measured"
    return f"{done}; {(search.asked or {}).get('probe', 'the next one')} {does}."


def investigation(user: Anyone, investigation_id: int) -> Investigation:
    """Return an investigation by its number. Raises Missing where the user may see no such one."""
    rows = Investigation.objects.filter(alert__in=Alert.objects.visible_to(user))
    return require_row(
        rows.filter(pk=investigation_id),
        f"There is no bisection or work-around {investigation_id} that you can access.",
    )
