"""Sets the retention rules of teams, and removes what they no longer keep, in small steps.

A rule that removes more than before acts a week after it was set, and can be changed until then. No step holds a lock
for longer than it takes to delete a few hundred rows, and a long pass continues with the next tick.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_manage
from farm.accounts.services import record
from farm.base.refusals import Invalid, NotAllowed
from farm.registry.services import expire_branch_version, expire_model, remove_unused_blobs
from farm.runs.models import CompiledModel, FinishedDocument, RetentionRule, Run, Trace
from farm.runs.models.retention import BRANCHES_DAYS
from farm.runs.selectors import retention as due
from farm.runs.services.locks import lock_run
from farm.runs.states import RunState

log = logging.getLogger(__name__)
NOTICE: Final = timedelta(days=7)
DAILY: Final = timedelta(days=1)
MAX_DAYS: Final = 3650
REPORTS_AT_ONCE: Final = 500
FILES_AT_ONCE: Final = 50
# a pass of `retain` stops after this time, and the next tick continues it
BUDGET_S: Final = 20.0
FIELDS: Final = ("timings_days", "traces_days", "models_days", "branches_days")
Days = int | None
HasTime = Callable[[], bool]


def set_retention(
    *,
    team: Team,
    by: User,
    timings_days: Days,
    traces_days: Days,
    models_days: Days,
    branches_days: Days = BRANCHES_DAYS,
) -> RetentionRule:
    """Set the team's retention rule, in days; None keeps a kind for ever. A rule that removes more acts after a week.

    The new rule is written to the audit log. Raises NotAllowed unless `by` manages the team, and Invalid for days out
    of range.
    """
    if not can_manage(by, team=team):
        raise NotAllowed(f"Only an admin of team “{team.name}” may say how long it keeps what it measured.")
    days_by_kind = dict(zip(FIELDS, (timings_days, traces_days, models_days, branches_days), strict=True))
    if any(days is not None and not 1 <= days <= MAX_DAYS for days in days_by_kind.values()):
        raise Invalid(f"Say 1 to {MAX_DAYS:,} days, or nothing to keep it always.", code="days")
    now = timezone.now()
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=team.pk)
        rule = RetentionRule.objects.filter(team=team).first() or RetentionRule(team=team, acts_from=now)
        before = {name: getattr(rule, name) for name in FIELDS}
        if any(days and (before[name] is None or days < before[name]) for name, days in days_by_kind.items()):
            rule.acts_from = now + NOTICE
        for name, days in days_by_kind.items():
            setattr(rule, name, days)
        rule.changed_by, rule.changed_at = by, now
        rule.save()
        facts = days_by_kind | {"acts_from": rule.acts_from.isoformat()}
        record(verb="retention set", subject=team.name, actor=by, team=team, facts=facts)
    return rule


def retain(*, budget_s: float = BUDGET_S) -> int:
    """Remove what is due by every rule that acts now, for up to `budget_s` seconds.

    A rule that finished within the last day is left out. What each team loses is written to the audit log. In teams
    without a rule, versions of branches are removed after BRANCHES_DAYS. Return how many were removed in sum: runs that
    lost their timings, files, models and versions.
    """
    until, now = time.monotonic() + budget_s, timezone.now()
    waiting = RetentionRule.objects.filter(acts_from__lte=now).exclude(acted_at__gt=now - DAILY)
    rules = list(waiting.select_related("team").order_by("acted_at", "pk"))
    rules += [RetentionRule(team=team, acts_from=now) for team in due.teams_without_rule(at=now)]

    def has_time() -> bool:
        return time.monotonic() < until

    removed = 0
    for rule in rules:
        if not has_time():
            break
        counts, is_done = _apply_rule(rule, now, has_time)
        removed += sum(counts.values())
        if any(counts.values()):
            record(verb="retention acted", subject=rule.team.name, team=rule.team, facts=counts)
        # a rule that was changed meanwhile is applied again, and does not hold up those of other teams
        if is_done:
            RetentionRule.objects.filter(pk=rule.pk).update(acted_at=now)
    return removed


def _apply_rule(rule: RetentionRule, now: datetime, has_time: HasTime) -> tuple[dict[str, int], bool]:
    """Apply a rule; return how many of each kind were removed, and whether everything due is removed."""
    counts = {"timings": 0, "traces": 0, "compiled": 0, "models": 0, "branches": 0}
    for kind, step in _list_steps(rule, now):
        # a rule that was changed meanwhile no longer applies
        stored = RetentionRule.objects.filter(team=rule.team)
        is_unchanged = stored.filter(changed_at=rule.changed_at).exists() if rule.pk else not stored.exists()
        if not (has_time() and is_unchanged):
            return counts, False
        counts[kind] += step()
    return counts, True


def _list_steps(rule: RetentionRule, now: datetime) -> Iterator[tuple[str, Callable[[], int]]]:
    """Yield each step with the kind of what it removes. A step returns how many it removed."""
    if rule.timings_days is not None:
        yield from (("timings", step) for step in _list_timing_steps(rule.team, rule.timings_days, now))
    if rule.traces_days is not None:
        traces = due.traces_due(rule.team, days=rule.traces_days, at=now)
        yield from (("traces", step) for step in _list_file_steps(traces, now))
        compiled = due.compiled_due(rule.team, days=rule.traces_days, at=now)
        yield from (("compiled", step) for step in _list_file_steps(compiled, now))
    if rule.models_days is not None:
        for model in due.models_due(rule.team, days=rule.models_days, at=now).order_by("pk"):
            yield "models", lambda model=model: expire_model(model)  # type: ignore[misc]
    if rule.branches_days is not None:
        versions = due.branches_due(rule.team, days=rule.branches_days, at=now).select_related("model", "artifact")
        for version in versions.order_by("pk"):
            yield "branches", lambda version=version: expire_branch_version(version)  # type: ignore[misc]


def _list_timing_steps(team: Team, days: int, now: datetime) -> Iterator[Callable[[], int]]:
    """Yield the steps that remove raw timings: for each run first its mark, then the deletions."""
    # a pass that ended in the middle of a run continues with it
    unfinished = Run.objects.filter(team=team, timings_removed_at__gt=now - 7 * DAILY)
    run_ids = [
        *unfinished.values_list("pk", flat=True),
        *due.runs_due(team, days=days, at=now).values_list("pk", flat=True),
    ]
    for run_id in run_ids:
        yield lambda run_id=run_id: _mark_removed(run_id, "timings_removed_at", now)  # type: ignore[misc]
        marked = Run.objects.filter(pk=run_id).exclude(timings_removed_at=None)
        while marked.exists() and due.timings_of(run_id).exists():
            yield lambda run_id=run_id: _remove_timings(run_id)  # type: ignore[misc]


def _remove_timings(run_id: int) -> int:
    """Remove some timings of a marked run; return 0, since the run was counted when it was marked."""
    rows = list(due.timings_of(run_id).values_list("pk", flat=True)[:REPORTS_AT_ONCE])
    due.timings_of(run_id).model.objects.filter(pk__in=rows).delete()
    return 0


def _list_file_steps(waiting: QuerySet[Trace] | QuerySet[CompiledModel], now: datetime) -> Iterator[Callable[[], int]]:
    """Yield the steps that remove traces or compiled models, FILES_AT_ONCE at a time."""
    in_order = waiting.order_by("pk").values_list("pk", "blob_id", "attempt__block__run")
    while rows := list(in_order[:FILES_AT_ONCE]):
        yield lambda rows=rows: _remove_files(waiting.model, rows, now)  # type: ignore[misc]


def _remove_files(kind: type[Trace | CompiledModel], rows: list[tuple[int, int | None, int]], now: datetime) -> int:
    for run_id in sorted({run for _, _, run in rows}):
        _mark_removed(run_id, "traces_removed_at", now)
    with transaction.atomic():
        kind._default_manager.filter(pk__in=[pk for pk, _, _ in rows]).delete()
        remove_unused_blobs([blob for _, blob, _ in rows])
    return len(rows)


def _mark_removed(run_id: int, field: str, now: datetime) -> int:
    """Mark a finished run whose files are removed; return 1, or 0 if it is marked already or runs again.

    Its stored document stays valid for the new revision.
    """
    with transaction.atomic():
        run = lock_run(run_id)
        if run.state != RunState.FINISHED or getattr(run, field) is not None:
            return 0
        Run.objects.filter(pk=run_id).update(**{field: now, "revision": F("revision") + 1})
        FinishedDocument.objects.filter(run=run_id, revision=run.revision).update(revision=F("revision") + 1)
    return 1
