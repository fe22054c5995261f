"""`onnxfarm farm retention` over real HTTP, and the farm's own ticking process that acts by the rule."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app
from django.utils import timezone
from typer.testing import Result

from farm.accounts.models import AuditEvent, Team, Tick, User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON
from farm.config.processes import TICKS
from farm.contract.version import TICK_QUEUE
from farm.registry import storage
from farm.registry.models import Blob, Model, Version
from farm.runs.models import CellDocument, Comparison, CompiledModel, Report, RetentionRule, Run, Trace
from farm.runs.selectors.documents import document_json
from onnxfarm.remote.account import Account
from tests.conftest import PROJECT, farm_environment
from tests.integration.dashboard import rows
from tests.processes import Process, wait_for

Command = Callable[..., Result]
LONG_AGO = timedelta(days=100)
FILE = b"1234567"


@pytest.fixture
def as_owner(onnxfarm: Command, account: Account, owner: User, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command of somebody who manages the team."""
    monkeypatch.setenv("ONNXFARM_TOKEN", issue_token(owner, ALL_OF_A_PERSON)[1])
    return onnxfarm


@pytest.fixture
def run(team: Team, owner: User) -> Run:
    """A run that was over a hundred days ago, with three traces and a compiled model; a model that nothing measured."""
    version, node = rows.make_version(team, owner), rows.make_node(team, owner)
    rows.make_version(team, owner, name="unused")
    matrix = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}}
    run = rows.finished_run(version, node, owner, matrix=matrix)
    attempt = run.blocks.get().attempts.get()
    for number, letter in enumerate("abc"):
        blob = stored(team, letter)
        Trace.objects.create(attempt=attempt, arm=0, trace_round=number, sha256=blob.sha256, bytes=7, blob=blob)
    CompiledModel.objects.create(attempt=attempt, arm=0, blob=stored(team, "d"))
    then = timezone.now() - LONG_AGO
    Run.objects.update(finished_at=then)
    Version.objects.update(created_at=then)
    run.refresh_from_db()
    return run


@pytest.fixture
def ticks(transactional_db: None, empty_broker: str, tmp_path: Path) -> Iterator[Process]:
    """The farm's own ticking process."""
    environment = farm_environment() | {"ONNXFARM_INDEX_POLL_S": "0"}
    with Process(TICKS.make_command(), env=environment, log=tmp_path / "ticks.log", cwd=PROJECT) as worker:
        wait_for(Tick.objects.filter(name="runs.tick").exists, what="the first tick", seconds=40)
        yield worker


def stored(team: Team, letter: str) -> Blob:
    """A file of the store with its row."""
    path = storage.blob_path(team_id=team.pk, sha256=letter * 64)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FILE)
    return Blob.objects.create(team=team, sha256=letter * 64, bytes=len(FILE))


def files(team: Team) -> list[bool]:
    return [storage.blob_path(team_id=team.pk, sha256=letter * 64).exists() for letter in "abcd"]


def acts() -> None:
    """The ticking process carries the duty out once more."""
    before = Tick.objects.filter(name="runs.retain").values_list("ended_at", flat=True).first()
    current_app.send_task("runs.retain", queue=TICK_QUEUE)
    ended = Tick.objects.filter(name="runs.retain", ended_at__gt=before or timezone.now() - timedelta(hours=1))
    wait_for(ended.exists, what="retention's turn", seconds=30)


def rounds() -> int:
    return Report.objects.filter(kind="round").count()


@pytest.mark.slow
def test_what_the_command_says_before_goes_a_week_later_and_what_was_settled_stays(
    as_owner: Command, run: Run, team: Team, ticks: Process
) -> None:
    assert "Team vision keeps everything." in as_owner("farm", "retention").stdout
    before, measured = document_json(run), rounds()
    settled = (CellDocument.objects.count(), Comparison.objects.count())
    assert measured > 0
    said = as_owner("farm", "retention", "--timings", "90", "--traces", "30", "--models", "30", "--json")
    going = {one["kind"]: (one["days"], one["count"], one["bytes"]) for one in json.loads(said.stdout)["doomed"]}
    assert going["raw timings"][:2] == (90, 1)
    assert going["raw traces"] == (30, 3, 3 * len(FILE))
    assert going["compiled models"] == (30, 1, len(FILE))
    assert going["models without a run"][:2] == (30, 1)
    shown = as_owner("farm", "retention").stdout
    assert "Nothing has been removed by this command; until then, the rule can be changed." in shown
    assert "compiled models" in shown
    # within the week the process looks, and leaves everything
    acts()
    assert (rounds(), files(team), Model.objects.count()) == (measured, [True] * 4, 2)
    RetentionRule.objects.update(acts_from=timezone.now())
    acts()
    assert (rounds(), files(team)) == (0, [False] * 4)
    assert (Trace.objects.count(), CompiledModel.objects.count()) == (0, 0)
    assert [model.pk for model in Model.objects.all()] == [run.version.model_id]
    run.refresh_from_db()
    assert document_json(run) == before
    assert (CellDocument.objects.count(), Comparison.objects.count()) == settled
    acted = AuditEvent.objects.get(verb="retention acted")
    assert acted.facts == {"timings": 1, "traces": 3, "compiled": 1, "models": 1, "branches": 0}
    after = json.loads(as_owner("farm", "retention", "--json").stdout)
    assert after["acted_at"] is not None
    assert [one["count"] for one in after["doomed"]] == [0, 0, 0, 0]


def test_days_that_cannot_be_are_refused(as_owner: Command) -> None:
    refused = as_owner("farm", "retention", "--traces", "soon")
    assert refused.exit_code == 2
    assert "“soon” cannot be read as a number of days; write one, or kept." in refused.stderr
    refused = as_owner("farm", "retention", "--traces", "0")
    assert refused.exit_code == 2
    assert "Say 1 to 3,650 days" in refused.stderr


def test_a_member_reads_the_rule_and_may_not_set_it(onnxfarm: Command, team: Team) -> None:
    assert "Team vision keeps everything." in onnxfarm("farm", "retention", "--team", "vision").stdout
    refused = onnxfarm("farm", "retention", "--team", "vision", "--traces", "30")
    assert (refused.exit_code, RetentionRule.objects.count()) == (2, 0)
    assert "Only an admin of team “vision” may say how long it keeps what it measured." in refused.stderr
