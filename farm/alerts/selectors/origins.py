"""Explains why the farm started a run, how far a search is, and how the graphs behind an alert differ."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from farm.accounts.selectors import Anyone
from farm.alerts.models import Alert, Find, Investigation, Symptom, WatchRound
from farm.alerts.states import InvestigationState, RoundOutcome
from farm.base.refusals import Missing, require_row
from farm.contract.document_comparisons import Comparison
from farm.rules.presenting import fusions
from farm.rules.presenting.key_results import KeyResult
from farm.rules.wording.numbers import counted
from farm.runs import selectors as runs
from farm.runs.models import Run
from farm.runs.selectors.runs import shown_states
from farm.runs.states import RunReason, RunState


@dataclass(frozen=True, slots=True)
class Origin:
    """A sentence on why a run was started, with the id of its watch, alert or search for settings.

    All ids are None where that row was removed.
    """

    text: str
    watch: int | None = None
    alert: int | None = None
    find: int | None = None


def explain_origin(run: Run) -> Origin | None:
    """Explain why the farm started a run; None where a person asked for it."""
    if run.reason == RunReason.ASKED:
        return None
    if run.reason in (RunReason.BISECTION, RunReason.WORK_AROUND):
        return _explain_search(run)
    if run.reason == RunReason.FIND:
        rows = Find.objects.filter(version=run.version_id).only("run", "steps").order_by("-pk")
        find = next((row.pk for row in rows if run.pk in (row.run_id, *(step["run"] for step in row.steps))), None)
        return Origin("Started to find the settings to ship.", find=find)
    watch_round = WatchRound.objects.filter(Q(run=run) | Q(confirming=run)).select_related("watch").first()
    if watch_round is None:
        return Origin("Started by a watch that has since been removed.")
    watch_name, confirming_id = watch_round.watch.name, watch_round.confirming_id
    text = f"Started by watch “{watch_name}”: {watch_round.step}."
    if run.reason == RunReason.CONFIRMATION:
        text = f"Started automatically to confirm a finding of watch “{watch_name}” in a fresh block."
    elif watch_round.outcome == RoundOutcome.ALERT and confirming_id is not None:
        text = f"{text} Run {confirming_id}, a fresh block, confirms: {watch_round.sentence}"
    return Origin(text, watch=watch_round.watch_id)


def confirmed_leads(runs_of_watches: Iterable[int]) -> dict[int, KeyResult]:
    """Map the ids of runs whose round ended with a confirmed alert to the main figures of the run that confirmed it.

    Other runs are left out, also where the confirming run has no main figure. One query.
    """
    rows = WatchRound.objects.filter(run__in=list(runs_of_watches), outcome=RoundOutcome.ALERT).order_by("pk")
    confirmed = rows.exclude(confirming__lead=None).values_list("run", "confirming__lead")
    return {run: KeyResult.model_validate(lead) for run, lead in confirmed}


def _explain_search(run: Run) -> Origin:
    # the runs of finished steps are in a JSON list, which no index covers, so all rows of the model are read
    rows = Investigation.objects.filter(alert__model=run.version.model_id).only("alert", "run", "steps").order_by("-pk")
    alerts = (row.alert_id for row in rows if run.pk in (row.run_id, *(step.get("run") for step in row.steps)))
    alert = next(alerts, None)
    goal = "the first bad release" if run.reason == RunReason.BISECTION else "a work-around"
    suffix = f" of alert {alert}" if alert is not None else ""
    return Origin(f"Started automatically to find {goal}{suffix}.", alert=alert)


def list_graph_changes(symptom: Symptom) -> list[str]:
    """List in sentences, the most important first, how the executed graphs of a symptom's two sides differ.

    Empty where the run or one of the two cells was removed, or where the run did not trace both.
    """
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
    """Return the state of a search as text or, while its run goes on, the state of that run as lists show it."""
    if search.state != InvestigationState.MEASURING or search.run is None or search.run.state == RunState.FINISHED:
        return str(search.state)
    return shown_states([search.run])[search.run.pk]


def describe_search(search: Investigation) -> str:
    """Return the result of a search that is over in a sentence, or else how far the search is."""
    if search.sentence:
        return search.sentence
    measured = f"{counted(len(search.steps), 'step')} measured"
    if search.state != InvestigationState.MEASURING:
        return f"{measured}."
    probe = (search.asked or {}).get("probe", "the next one")
    activity = "is being measured" if activity_of_search(search) == "measuring" else "waits to be measured"
    return f"{measured}; {probe} {activity}."


def investigation(user: Anyone, investigation_id: int) -> Investigation:
    """Return an investigation by its number. Raises Missing where the user may see no such one."""
    rows = Investigation.objects.filter(alert__in=Alert.objects.visible_to(user))
    return require_row(
        rows.filter(pk=investigation_id),
        f"There is no bisection or work-around {investigation_id} that you can access.",
    )
