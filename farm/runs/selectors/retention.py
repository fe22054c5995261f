"""Finds what retention would remove, and explains what it has removed.

Documents, verdicts, comparisons and series always stay, as they are rows of their own, written when a block ended. Raw
timings are the reports of rounds. Those of failed blocks stay, since they are the only evidence.

The functions named `…_due` return what a rule of `days` days removes at the time `at`. Timings, traces and compiled
models count from when their run finished, which must also be concluded. The functions that explain a removal return one
sentence, or "" where nothing was removed. Compiled models count as removed with the traces, even if the run had none.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import team as team_of
from farm.registry.models import Blob, Model, Version
from farm.runs.models import Attempt, CompiledModel, Report, RetentionRule, Run, Trace
from farm.runs.models.retention import BRANCHES_DAYS
from farm.runs.states import BlockState, RunState

TIMINGS: Final = "raw timings"
TRACES: Final = "raw traces"
COMPILED: Final = "compiled models"
MODELS: Final = "models without a run"
BRANCHES: Final = "versions of branches"


@dataclass(frozen=True, slots=True)
class DueForRemoval:
    """The count and bytes of one kind of things that a rule would remove, because they are older than `days` days.

    Raw timings are counted by runs, and their bytes include all reports of these runs.
    """

    kind: str
    days: int
    count: int
    bytes: int


def find_retention_rule(user: User, team_id: int) -> RetentionRule:
    """Return the team's rule; without one, an unsaved default. Raises Missing for a team that the user may not see."""
    team = team_of(user, team_id)
    rule = RetentionRule.objects.select_related("team", "changed_by").filter(team=team).first()
    return rule or RetentionRule(team=team, acts_from=timezone.now())


def find_next_act(rule: RetentionRule) -> datetime | None:
    """Return when the rule acts next, which is now at the earliest; None if it has days for nothing.

    Days for versions of branches do not count while the team has none that may be removed.
    """
    has_branches = rule.branches_days is not None and _list_branch_versions(rule.team).exists()
    if not has_branches and all(days is None for days in (rule.timings_days, rule.traces_days, rule.models_days)):
        return None
    daily = rule.acted_at + timedelta(days=1) if rule.acted_at else rule.acts_from
    return max(rule.acts_from, daily, timezone.now())


def list_due_removals(rule: RetentionRule) -> list[DueForRemoval]:
    """List what the rule would remove when it acts next, for each kind that it has days for.

    A kind of which nothing is due is listed with a count of 0; versions of branches are listed only where the team has
    some. Compiled models follow the days of traces.
    """
    at = find_next_act(rule) or timezone.now()
    removals = []
    if rule.timings_days is not None:
        runs = runs_due(rule.team, days=rule.timings_days, at=at)
        attempts = Attempt.objects.filter(block__run__in=runs, block__state=BlockState.DONE)
        size = attempts.aggregate(total=Sum("reported_bytes"))["total"] or 0
        removals.append(DueForRemoval(TIMINGS, rule.timings_days, runs.count(), size))
    if rule.traces_days is not None:
        facts = traces_due(rule.team, days=rule.traces_days, at=at).aggregate(count=Count("pk"), total=Sum("bytes"))
        removals.append(DueForRemoval(TRACES, rule.traces_days, facts["count"], facts["total"] or 0))
        compiled = compiled_due(rule.team, days=rule.traces_days, at=at)
        # two cells that compiled the same share one file
        files = Blob.objects.filter(pk__in=compiled.values("blob")).aggregate(total=Sum("bytes"))
        removals.append(DueForRemoval(COMPILED, rule.traces_days, compiled.count(), files["total"] or 0))
    if rule.models_days is not None:
        models = models_due(rule.team, days=rule.models_days, at=at)
        used = Blob.objects.filter(uses__artifact__versions__model__in=models).distinct()
        size = used.aggregate(total=Sum("bytes"))["total"] or 0
        removals.append(DueForRemoval(MODELS, rule.models_days, models.count(), size))
    if rule.branches_days is not None and _list_branch_versions(rule.team).exists():
        versions = branches_due(rule.team, days=rule.branches_days, at=at)
        stored = Blob.objects.filter(uses__artifact__versions__in=versions, swept_at=None).distinct()
        size = stored.aggregate(total=Sum("bytes"))["total"] or 0
        removals.append(DueForRemoval(BRANCHES, rule.branches_days, versions.count(), size))
    return removals


def _list_branch_versions(team: Team) -> QuerySet[Version]:
    return Version.objects.not_removed().filter(model__team=team, is_kept=False).exclude(branch="")


def branches_due(team: Team, *, days: int, at: datetime) -> QuerySet[Version]:
    """Return versions of branches last uploaded more than `days` days before `at` that no open run measures.

    Versions that somebody marked to be kept are left out.
    """
    open_runs = Run.objects.filter(team=team).exclude(state=RunState.FINISHED)
    due = _list_branch_versions(team).filter(sent_at__lt=at - timedelta(days=days))
    return due.exclude(runs__in=open_runs).exclude(beside__run__in=open_runs)


def teams_without_rule(*, at: datetime) -> QuerySet[Team]:
    """Return teams without a rule that have versions of branches which are due by the default."""
    sent = Version.objects.not_removed().filter(sent_at__lt=at - timedelta(days=BRANCHES_DAYS), is_kept=False)
    return Team.objects.filter(retention=None, pk__in=sent.exclude(branch="").values("model__team"))


def _list_finished_runs(team: Team, *, days: int, at: datetime) -> QuerySet[Run]:
    over = Run.objects.filter(team=team, state=RunState.FINISHED, is_concluded=True)
    return over.filter(finished_at__lt=at - timedelta(days=days))


def runs_due(team: Team, *, days: int, at: datetime) -> QuerySet[Run]:
    """Return measured runs that finished more than `days` days before `at`, and still have their raw timings."""
    measured = Exists(Run.objects.filter(pk=OuterRef("pk"), blocks__state=BlockState.DONE))
    return _list_finished_runs(team, days=days, at=at).filter(measured, timings_removed_at=None)


def timings_of(run_id: int) -> QuerySet[Report]:
    return Report.objects.filter(attempt__block__run=run_id, attempt__block__state=BlockState.DONE, kind="round")


def traces_due(team: Team, *, days: int, at: datetime) -> QuerySet[Trace]:
    return Trace.objects.filter(attempt__block__run__in=_list_finished_runs(team, days=days, at=at))


def compiled_due(team: Team, *, days: int, at: datetime) -> QuerySet[CompiledModel]:
    return CompiledModel.objects.filter(attempt__block__run__in=_list_finished_runs(team, days=days, at=at))


def models_due(team: Team, *, days: int, at: datetime) -> QuerySet[Model]:
    """Return models that were never measured, watched or alerted about, with no upload for `days` days before `at`.

    Models without a version are left out.
    """
    used = Version.objects.filter(model=OuterRef("pk")).filter(
        Q(runs__isnull=False) | Q(beside__isnull=False) | Q(watch_rounds__isnull=False) | Q(alerts__isnull=False)
    )
    models = Model.objects.filter(team=team).exclude(Exists(used))
    return models.annotate(last=Max("versions__created_at")).filter(last__lt=at - timedelta(days=days))


def explain_removed_timings(run: Run) -> str:
    return _explain_removed(run, "raw timings", run.timings_removed_at)


def explain_removed_traces(run: Run) -> str:
    return _explain_removed(run, "raw traces", run.traces_removed_at)


def explain_removed_compiled_models(run: Run) -> str:
    return _explain_removed(run, "compiled models", run.traces_removed_at)


def _explain_removed(run: Run, kind: str, at: datetime | None) -> str:
    if at is None:
        return ""
    return (
        f"The {kind} of run {run.pk} were removed on {at:%Y-%m-%d}, as its team's retention rule says; "
        "its documents and verdicts are kept."
    )
