"""Retention by a team's rule: what goes, when it is said, and what stays whatever the rule says."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team, User
from farm.base.refusals import Conflict, Gone, Invalid, NotAllowed
from farm.registry import storage
from farm.registry.models import Blob, Model, Version
from farm.registry.services import clear_orphans
from farm.runs.models import CellDocument, Comparison, Report, RetentionRule, Run, Trace
from farm.runs.selectors import document, timing_lines
from farm.runs.selectors.documents import document_json
from farm.runs.selectors.retention import find_next_act, find_retention_rule, list_due_removals
from farm.runs.services import measure_more_rounds, retain, retention, set_retention
from farm.runs.states import BlockState
from tests.integration.dashboard import rows

OLD = timedelta(days=100)


def put_back(run: Run, age: timedelta = OLD) -> Run:
    """The run was over so long ago."""
    Run.objects.filter(pk=run.pk).update(finished_at=timezone.now() - age)
    run.refresh_from_db()
    return run


def rule(team: Team, by: User, **days: int | None) -> RetentionRule:
    """A rule that acts now."""
    wanted: dict[str, Any] = {"timings_days": None, "traces_days": None, "models_days": None} | days
    made = set_retention(team=team, by=by, **wanted)
    RetentionRule.objects.filter(pk=made.pk).update(acts_from=timezone.now() - timedelta(minutes=1))
    made.refresh_from_db()
    return made


def stored(team: Team, letter: str, *, age: timedelta = OLD) -> Blob:
    """A file of the store with its row."""
    digest = letter * 64
    path = storage.blob_path(team_id=team.pk, sha256=digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"1234567")
    then = time.time() - age.total_seconds()
    os.utime(path, (then, then))
    return Blob.objects.create(team=team, sha256=digest, bytes=7)


def trace_of(run: Run, letter: str) -> Trace:
    attempt = run.blocks.get().attempts.get()
    blob = stored(run.team, letter)
    return Trace.objects.create(attempt=attempt, arm=0, trace_round=0, sha256=blob.sha256, bytes=7, blob=blob)


@pytest.fixture
def run(team: Team, owner: User) -> Run:
    """A run that was over a hundred days ago, in one block."""
    version, node = rows.make_version(team, owner), rows.make_node(team, owner)
    matrix = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}}
    return put_back(rows.finished_run(version, node, owner, matrix=matrix))


def rounds_of(run: Run) -> int:
    return Report.objects.filter(attempt__block__run=run, kind="round").count()


def test_raw_timings_go_and_documents_and_verdicts_stay(run: Run, team: Team, owner: User) -> None:
    before, whole = document_json(run), document(run, with_operators=False).to_json()
    others = Report.objects.exclude(kind="round").count()
    settled = (CellDocument.objects.count(), Comparison.objects.count())
    assert rounds_of(run) > 0
    assert len(list(timing_lines(run, "c1"))) > 1
    rule(team, owner, timings_days=30)
    assert retain() == 1
    assert rounds_of(run) == 0
    run.refresh_from_db()
    assert document_json(run) == before
    assert document(run, with_operators=False).to_json() == whole
    assert (CellDocument.objects.count(), Comparison.objects.count()) == settled
    assert Report.objects.count() == others
    with pytest.raises(Gone, match=f"The raw timings of run {run.pk} were removed on "):
        timing_lines(run, "c1")
    with pytest.raises(Conflict, match="were removed on"):
        measure_more_rounds(run=run, by=owner, rounds=2)
    acted = AuditEvent.objects.get(verb="retention acted")
    assert (acted.team, acted.facts) == (team, {"timings": 1, "traces": 0, "compiled": 0, "models": 0, "branches": 0})
    assert retain() == 0


def test_a_rule_says_what_goes_and_acts_a_week_after_it_was_set(run: Run, team: Team, owner: User) -> None:
    made = set_retention(team=team, by=owner, timings_days=30, traces_days=None, models_days=None)
    assert timedelta(days=6, hours=23) < made.acts_from - timezone.now() <= timedelta(days=7)
    [timings] = list_due_removals(made)
    assert (timings.kind, timings.days, timings.count) == ("raw timings", 30, 1)
    assert timings.bytes > 1_000
    assert retain() == 0
    assert rounds_of(run) > 0


def test_a_rule_that_is_changed_before_it_acts_removes_nothing(run: Run, team: Team, owner: User) -> None:
    rule(team, owner, timings_days=30)
    set_retention(team=team, by=owner, timings_days=None, traces_days=None, models_days=None)
    assert retain() == 0
    assert find_next_act(RetentionRule.objects.get()) is None
    rule(team, owner, timings_days=30)
    stricter = set_retention(team=team, by=owner, timings_days=20, traces_days=None, models_days=None)
    assert stricter.acts_from > timezone.now()
    rule(team, owner, timings_days=20)
    milder = set_retention(team=team, by=owner, timings_days=300, traces_days=None, models_days=None)
    assert milder.acts_from < timezone.now()
    assert retain() == 0
    assert rounds_of(run) > 0


def test_what_is_counted_is_what_will_be_due_then(run: Run, team: Team, owner: User) -> None:
    put_back(run, timedelta(days=25))
    made = set_retention(team=team, by=owner, timings_days=30, traces_days=None, models_days=None)
    assert [one.count for one in list_due_removals(made)] == [1]
    RetentionRule.objects.update(acts_from=timezone.now())
    assert retain() == 0


def test_a_pass_that_takes_long_goes_on_with_the_next(
    run: Run, team: Team, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "REPORTS_AT_ONCE", 2)
    made = rule(team, owner, timings_days=30)
    whole = rounds_of(run)
    assert retain(budget_s=-1) == 0
    assert rounds_of(run) == whole
    moments = iter([True, True, False])
    counts, is_done = retention._apply_rule(made, timezone.now(), lambda: next(moments))
    assert (counts["timings"], is_done, rounds_of(run)) == (1, False, whole - 2)
    assert RetentionRule.objects.get().acted_at is None
    retain()
    assert rounds_of(run) == 0
    assert RetentionRule.objects.get().acted_at is not None


def test_a_rule_that_is_changed_while_it_acts_stops(run: Run, team: Team, owner: User) -> None:
    made = rule(team, owner, timings_days=30)
    RetentionRule.objects.update(timings_days=None, changed_at=timezone.now() + timedelta(seconds=1))
    assert retention._apply_rule(made, timezone.now(), lambda: True) == (
        {"timings": 0, "traces": 0, "compiled": 0, "models": 0, "branches": 0},
        False,
    )
    assert rounds_of(run) > 0


def test_a_rule_that_is_changed_while_it_acts_does_not_hold_up_other_teams(
    run: Run, team: Team, owner: User, stranger: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = rule(team, owner, timings_days=30)
    other = rule(stranger.memberships.get().team, stranger, timings_days=30)
    apply_rule = retention._apply_rule

    def change_and_apply(of: RetentionRule, *how: Any) -> tuple[dict[str, int], bool]:
        RetentionRule.objects.filter(pk=changed.pk).update(changed_at=timezone.now())
        return apply_rule(of, *how)

    monkeypatch.setattr(retention, "_apply_rule", change_and_apply)
    assert retain() == 0
    assert list(RetentionRule.objects.exclude(acted_at=None)) == [other]


def test_what_is_young_open_or_of_a_block_that_failed_stays(run: Run, team: Team, owner: User) -> None:
    rule(team, owner, timings_days=101)
    assert retain() == 0
    RetentionRule.objects.update(timings_days=30, acted_at=None)
    run.blocks.update(state=BlockState.FAILED)
    assert retain() == 0
    assert rounds_of(run) > 0


def test_another_team_s_rule_touches_nothing(run: Run, stranger: User) -> None:
    rule(stranger.memberships.get().team, stranger, timings_days=1, traces_days=1, models_days=1)
    assert retain() == 0
    assert rounds_of(run) > 0


def test_raw_traces_go_with_their_files(run: Run, team: Team, owner: User, django_capture_on_commit_callbacks: Any):
    path = storage.blob_path(team_id=team.pk, sha256=trace_of(run, "a").sha256)
    made = rule(team, owner, traces_days=30)
    said = [(one.kind, one.count, one.bytes) for one in list_due_removals(made)]
    assert said == [("raw traces", 1, 7), ("compiled models", 0, 0)]
    with django_capture_on_commit_callbacks(execute=True):
        assert retain() == 1
    assert not Trace.objects.exists()
    assert not path.exists()
    assert not Blob.objects.filter(sha256="a" * 64).exists()
    assert rounds_of(run) > 0
    # those of a run that measured more rounds later are due by its later end
    trace_of(run, "b")
    RetentionRule.objects.update(acted_at=None)
    assert retain() == 1


def test_models_without_a_run_go_and_measured_ones_stay(
    run: Run, team: Team, owner: User, django_capture_on_commit_callbacks: Any
) -> None:
    unused, fresh = rows.make_version(team, owner, name="unused"), rows.make_version(team, owner, name="fresh")
    Version.objects.exclude(pk=fresh.pk).update(created_at=timezone.now() - OLD)
    made = rule(team, owner, models_days=30)
    assert [(one.kind, one.count) for one in list_due_removals(made)] == [("models without a run", 1)]
    with django_capture_on_commit_callbacks(execute=True):
        assert retain() == 1
    assert not Model.objects.filter(pk=unused.model_id).exists()
    assert sorted(Model.objects.values_list("name", flat=True)) == sorted([run.version.model.name, "fresh"])
    assert AuditEvent.objects.filter(verb="model removed", actor=None).count() == 1


def test_files_that_no_row_names_go_and_others_stay(team: Team) -> None:
    named, orphan, young = (storage.blob_path(team_id=team.pk, sha256=letter * 64) for letter in "abc")
    for letter in "ab":
        stored(team, letter)
    stored(team, "c", age=timedelta(hours=1))
    Blob.objects.exclude(sha256="a" * 64).delete()
    assert clear_orphans() == 1
    assert (named.exists(), orphan.exists(), young.exists()) == (True, False, True)


def test_a_file_that_cannot_be_deleted_does_not_count(team: Team) -> None:
    stuck = storage.blob_path(team_id=team.pk, sha256="f" * 64)
    stuck.mkdir(parents=True)
    os.utime(stuck, (0, 0))
    assert clear_orphans() == 0
    assert stuck.exists()


def test_an_empty_or_odd_store_is_left_alone(team: Team, tmp_path: Path) -> None:
    assert clear_orphans() == 0
    place = storage.blob_path(team_id=team.pk, sha256="d" * 64).parent
    place.mkdir(parents=True)
    (place / "notes.txt").write_text("somebody's")
    (place.parent / "README").write_text("somebody's")
    of_the_farm = storage.blob_path(team_id=storage.OF_THE_FARM, sha256="e" * 64)
    of_the_farm.parent.mkdir(parents=True)
    of_the_farm.write_text("a runtime")
    os.utime(of_the_farm, (0, 0))
    assert clear_orphans(older_than_s=0) == 0
    assert of_the_farm.exists()


def test_only_admins_of_the_team_set_its_rule(team: Team, member: User, stranger: User) -> None:
    for somebody in (member, stranger):
        with pytest.raises(NotAllowed):
            set_retention(team=team, by=somebody, timings_days=1, traces_days=None, models_days=None)


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_days_out_of_range_are_refused(team: Team, owner: User, days: int) -> None:
    with pytest.raises(Invalid, match="1 to 3,650 days"):
        set_retention(team=team, by=owner, timings_days=days, traces_days=None, models_days=None)


def test_pages_and_the_api_say_what_goes_and_what_is_gone(run: Run, team: Team, owner: User, api_of: Any) -> None:
    client = Client()
    client.force_login(owner)
    address = f"/settings/teams/{team.pk}/retention/"
    assert "Everything is kept" in client.get(address).content.decode()
    page = client.post(address, {"timings_days": "30", "traces_days": "90", "models_days": ""}, follow=True)
    text = page.content.decode()
    assert "The rule was set; it acts from " in text
    assert "1 run</td>" in text
    for bad in ("x", "1.5", "-3", "99999999"):
        assert (
            "cannot be read as a number of days"
            in client.post(address, {"timings_days": bad}, follow=True).content.decode()
        )
    for beyond in ("0", "999999"):
        assert "1 to 3,650 days" in client.post(address, {"timings_days": beyond}, follow=True).content.decode()
    api = api_of(owner, "read", "admin")
    said = api.get(f"/api/v1/teams/{team.pk}/retention").json()
    assert (said["timings_days"], said["traces_days"], said["models_days"]) == (30, 90, None)
    assert [one["count"] for one in said["doomed"]] == [1, 0, 0]
    put = api.put(f"/api/v1/teams/{team.pk}/retention", {"timings_days": 20}, content_type="application/json").json()
    assert (put["timings_days"], put["traces_days"]) == (20, None)
    trace_of(run, "f")
    rule(team, owner, timings_days=20, traces_days=20)
    assert retain() == 2
    for path in (f"/runs/{run.pk}/cells/c1/", f"/runs/{run.pk}/cells/c1/?view=trace"):
        text = client.get(path).content.decode()
        assert f"The raw timings of run {run.pk} were removed on" in text
        assert f"The raw traces of run {run.pk} were removed on" in text
        assert "Raw trace<" not in text
    assert client.get(f"/api/v1/runs/{run.pk}/cells/c1/timings.csv").status_code == 410
    assert client.get(f"/runs/{run.pk}/").status_code == 200


def test_a_team_without_a_rule_keeps_everything(team: Team, owner: User) -> None:
    found = find_retention_rule(owner, team.pk)
    assert (list_due_removals(found), find_next_act(found)) == ([], None)
