"""`onnxfarm watch`, `alerts` and `report` against a farm over real HTTP."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Watch, WatchRound
from farm.alerts.states import AlertState, RoundOutcome, RoundState
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import Version
from tests.integration.alerts.driving import Lab, make_watch, offer, slower_alert, slower_from
from tests.integration.dashboard.rows import begin_run, make_node, make_version
from tests.integration.dashboard.watching import WANTED, found_by_a_watch

Command = Callable[..., Result]


@pytest.fixture
def node(team: Team, owner: User) -> Node:
    return make_node(team, owner)


@pytest.fixture
def version(team: Team, owner: User) -> Version:
    return make_version(team, owner)


@pytest.fixture
def alert(version: Version, member: User, node: Node) -> Alert:
    """An alert of a slower release whose model is stored."""
    blob = version.artifact.files.get().blob
    place = storage.blob_path(team_id=blob.team_id, sha256=blob.sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"the model")
    make_watch(version, member)
    return slower_alert(node)


def sentence(result: Result, *, code: int = 2) -> str:
    """What a failed command said: one line, no trace."""
    assert result.exit_code == code, result.output
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("onnxfarm: ")
    return last


def test_a_watch_is_made_listed_paused_resumed_and_removed(onnxfarm: Command, version: Version) -> None:
    assert "No watches yet" in onnxfarm("watch", "list").stdout
    rule = '{"latency": 0.1, "kinds": ["slower"]}'
    made = onnxfarm("watch", "add", "nightly", "--reference", "1.29.0", "--model", "encoder", "--rule", rule, "--pre")
    assert made.exit_code == 0, made.output
    watch = Watch.objects.get(pk=int(made.stdout))
    assert (watch.rule.latency, watch.watched.get(), watch.with_prereleases) == (0.1, version.model, True)
    listed = onnxfarm("watch", "list").stdout
    assert "nightly" in listed
    assert "watching" in listed
    assert json.loads(onnxfarm("watch", "list", "--json").stdout)[0]["id"] == watch.pk
    assert "is paused" in onnxfarm("watch", "pause", "nightly").stderr
    assert "paused" in onnxfarm("watch", "list").stdout
    assert "is resumed" in onnxfarm("watch", "resume", watch.pk).stderr
    assert "--yes" in sentence(onnxfarm("watch", "remove", "nightly"))
    assert onnxfarm("watch", "remove", "nightly", "--yes").exit_code == 0
    assert not Watch.objects.exists()


def test_a_watch_is_called_and_its_outcome_is_the_exit_code(
    onnxfarm: Command, version: Version, member: User, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer("1.29.0", "1.30.0")
    watch = make_watch(version, member, on_release=False)
    # the farm's own beat, which does not run here, is taken a step in each pause
    steps = [Lab(node).live]
    monkeypatch.setattr("onnxfarm.commands.watch.time.sleep", lambda seconds: steps[-1]())
    done = onnxfarm("watch", "run", watch.name, "--candidate", "1.30.0", "--wait")
    assert done.exit_code == 0, done.output
    assert "1.29.0 → 1.30.0" in done.stderr
    steps.append(Lab(node, p50_ms=slower_from("1.30.0")).live)
    assert "slower than 1.29.0" in sentence(
        onnxfarm("watch", "run", watch.pk, "--candidate", "1.30.0", "--wait"), code=1
    )
    steps.append(lambda: None)
    late = onnxfarm("watch", "run", watch.pk, "--candidate", "1.30.0", "--wait", "--timeout", "0.0001")
    assert "they continue" in sentence(late, code=4)
    steps.append(WatchRound.objects.all().delete)
    gone = onnxfarm("watch", "run", watch.pk, "--candidate", "1.30.0", "--wait")
    assert "1 of 1 rounds are gone" in sentence(gone, code=3)
    WatchRound.objects.filter(state=RoundState.WAITING).update(
        state=RoundState.JUDGED, outcome=RoundOutcome.INFRA, sentence="No node."
    )
    listed = json.loads(onnxfarm("watch", "run", watch.pk, "--candidate", "1.30.0", "--json").stdout)
    assert [one["state"] for one in listed] == ["waiting"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["watch", "add", "x", "--reference", "9.9", "--model", "encoder"], "nearest"),
        (["watch", "add", "x", "--reference", "1.29.0"], "model"),
        (["watch", "add", "x", "--reference", "1.29.0", "--model", "none"], "no model “none”"),
        (["watch", "add", "x", "--reference", "1.29.0", "--model", "encoder", "--rule", "{"], "--rule is not JSON"),
        (["watch", "add", "x", "--reference", "1.29.0", "--model", "encoder", "--rule", "[]"], "not an object"),
        (["watch", "add", "x", "--reference", "1.29.0", "--model", "encoder", "--schedule", "daily"], "five fields"),
        (["watch", "add", "x", "--reference", "1.29.0", "--matrix", "none.yaml"], "none.yaml cannot be read"),
        (["watch", "run", "nothing"], "no watch “nothing”"),
        (["watch", "run", "999"], "no watch 999"),
        (["watch", "pause", "nothing"], "onnxfarm watch list"),
        (["alerts", "list", "--list", "closed"], "not one of open"),
        (["alerts", "show", "999"], "no alert 999"),
        (["alerts", "ack", "999"], "no alert 999"),
        (["alerts", "snooze", "999", "--until", "soon"], "not a date or time"),
        (["report", "999"], "no alert 999"),
        (["report", "999", "--issue", "-", "-o", "x.zip"], "leave out --issue or --output"),
        (["report", "999", "-o", "-"], "cannot be printed"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(onnxfarm: Command, version: Version, words: list[str], said: str):
    assert said in sentence(onnxfarm(*words))


def test_two_watches_of_one_name_are_told_apart_by_number(
    onnxfarm: Command, version: Version, member: User, stranger: User
) -> None:
    from farm.accounts.models import Membership
    from farm.accounts.states import Role

    other = make_version(Team.objects.get(name="elsewhere"), stranger)
    Membership.objects.create(team=other.model.team, user=member, role=Role.MEMBER)
    offer("1.29.0")
    for one in (version, other):
        make_watch(one, member)
    assert "2 watches are named “upgrades”" in sentence(onnxfarm("watch", "pause", "upgrades"))


def test_alerts_are_listed_shown_and_settled(onnxfarm: Command, alert: Alert, owner: User) -> None:
    assert "onnxruntime==1.30.0" in onnxfarm("alerts", "list").stdout
    shown = onnxfarm("alerts", "show", alert.pk).stdout
    assert "since when: 1.30.0 is the first bad release" in shown
    assert "opened:" in shown
    assert json.loads(onnxfarm("alerts", "show", alert.pk, "--json").stdout)["id"] == alert.pk
    for words, state, said in (
        (["ack", alert.pk, "--note", "mine"], "acknowledged", "Acknowledged, assigned to member. mine"),
        (["assign", alert.pk, "owner"], "acknowledged", "Assigned to owner by member"),
        (["note", alert.pk, "asked upstream"], "acknowledged", "asked upstream"),
        (["snooze", alert.pk, "--until", "2099-12-24"], "acknowledged, snoozed", "until 2099-12-24 00:00 UTC"),
        (["snooze", alert.pk, "--release", "1.32.0"], "acknowledged, snoozed", "until 1.32.0"),
        (["invalid", alert.pk, "--reason", "another machine"], "invalid", "another machine"),
        (["reopen", alert.pk, "--note", "no"], "open", "Reopened by"),
        (["infra", alert.pk, "--reason", "disk full"], "infra", "disk full"),
    ):
        done = onnxfarm("alerts", *words)
        assert (done.exit_code, f"is {state}" in done.stderr, said in done.stderr) == (0, True, True), done.stderr
    assert onnxfarm("alerts", "list").stdout.strip() == "No open alerts."
    assert json.loads(onnxfarm("alerts", "list", "--list", "infra", "--json").stdout)[0]["id"] == alert.pk


def test_a_bisection_is_asked_for(onnxfarm: Command, alert: Alert) -> None:
    assert "each step is one run" in onnxfarm("alerts", "bisect", alert.pk).stderr
    Alert.objects.update(state=AlertState.OPEN)
    assert onnxfarm("alerts", "bisect", alert.pk).exit_code == 2


def test_a_report_is_fetched_as_a_zip_or_as_the_issues_text(onnxfarm: Command, alert: Alert, tmp_path: Path) -> None:
    path = tmp_path / "report.zip"
    assert onnxfarm("report", alert.pk, "-o", path).exit_code == 0
    with zipfile.ZipFile(path) as archive:
        assert {"repeat.py", "issue.md", "model/encoder.onnx", "timings-new.csv"} <= set(archive.namelist())
    assert onnxfarm("report", alert.pk, "--issue", "-").stdout.startswith("# [Performance] 23 % slower")
    assert "cannot be written" in sentence(onnxfarm("report", alert.pk, "-o", tmp_path / "none" / "x.zip"))


def test_a_release_s_report_card_is_printed_with_its_work_around_and_refused_where_it_is_none(
    onnxfarm: Command, version: Version, member: User, node: Node
) -> None:
    found_by_a_watch(version, node, member)
    shown = onnxfarm("release", "1.30.0").stdout
    assert f"% slower: disable {WANTED}" in shown
    assert f"disabled_optimizers=['{WANTED}']" in shown
    assert "onnxruntime==1.30.0 beside onnxruntime==1.29.0" in shown
    begin_run(version, member, matrix={"matrix": {"runtime": ["1.30.0"]}})
    assert "Still being measured: encoder; until" in onnxfarm("release", "onnxruntime==1.30.0").stdout
    card = json.loads(onnxfarm("release", "1.30.0", "--against", "1.29.0", "--json").stdout)
    assert (card["release"], card["models"][0]["nodes"][0]["kind"]) == ("onnxruntime==1.30.0", "slower")
    assert "is no release that this farm knows" in sentence(onnxfarm("release", "9.9.9"))
    assert "is no release" in sentence(onnxfarm("release", "onnxruntime=="))
