"""Watches: in a sentence each, with the states of their own; made, changed, run, paused and removed by forms."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from dashboard.views.watches import MODELS_OFFERED
from farm.accounts.models import Team, User
from farm.alerts.models import Alert, IndexLook, Watch, WatchRound
from farm.alerts.services.channels import create_channel
from farm.alerts.states import AlertState, RoundOutcome, RoundState
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.states import BlockState
from tests.integration.alerts.driving import make_watch
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, count_queries, words_of

pytestmark = pytest.mark.django_db


def form(version: Version | None = None, **changes: Any) -> dict[str, Any]:
    """What the form sends for a plain watch."""
    known = {
        "name": "upgrades", "label": "", "distribution": "onnxruntime", "reference": "1.29.0", "schedule": "",
        "matrix": "provider: [cpu]\nbatch: [1]\n", "on_release": "yes", "on_version": "yes", "kinds": ["slower"],
        "latency": "5", "session": "50", "first": "50", "memory": "20",
        "models": [str(version.model_id)] if version else [],
    }  # fmt: skip
    return known | changes


def test_a_farm_without_watches_says_how_to_make_one(signed_in: Client) -> None:
    response = signed_in.get("/watches/")
    assert "No watches yet" in assert_is_page(response)
    assert re.search(r'data-copy="onnxfarm watch add', response.content.decode())
    assert "No models to watch yet" in assert_is_page(signed_in.get("/watches/new/"))


def test_a_watch_is_told_in_one_sentence_with_its_next_look(signed_in: Client, watch: Watch, settings: Settings):
    settings.INDEX_POLL_S = 900
    IndexLook.objects.create(distribution="onnxruntime", looked_at=watch.created_at)
    words = assert_is_page(signed_in.get("/watches/"))
    assert "1 watch" in words
    assert (
        "encoder (fp32, batch 1, threads 1), again when a release of onnxruntime appears or a model gets a version"
        in words
    )
    assert "always beside onnxruntime 1.29.0." in words
    assert "Next: queries the package index at" in words
    assert "not measured yet" in words


def test_a_watch_that_nobody_looked_after_is_overdue(signed_in: Client, watch: Watch, settings: Settings) -> None:
    settings.INDEX_POLL_S = 900
    now = timezone.now()
    # a minute late is not overdue
    look = IndexLook.objects.create(distribution="onnxruntime", looked_at=now - timedelta(minutes=16))
    Watch.objects.filter(pk=watch.pk).update(schedule="daily", next_at=now - timedelta(minutes=1))
    words = words_of(signed_in.get("/watches/"))
    assert "Next: queries the package index at" in words
    assert "measures at" in words
    IndexLook.objects.filter(pk=look.pk).update(looked_at=now - timedelta(hours=1))
    Watch.objects.filter(pk=watch.pk).update(next_at=now - timedelta(hours=1))
    assert words_of(signed_in.get("/watches/")).count("overdue") == 2


@pytest.mark.parametrize(
    ("outcome", "sentence", "shown"),
    [
        (RoundOutcome.INFRA, "No node is online.", "could not measure"),
        (RoundOutcome.UNDECIDED, "Whether it is slower is undecided.", "undecided"),
        (RoundOutcome.QUIET, "1 pair compared, no changes to report.", "no change"),
        (RoundOutcome.NEWS, "It is 12 % faster.", "better"),
        (RoundOutcome.UNCONFIRMED, "A fresh block did not show it again.", "not confirmed"),
        (RoundOutcome.ALERT, "It is 24 % slower.", "alert"),
    ],
)
def test_each_outcome_has_a_state_of_its_own(
    signed_in: Client, watch: Watch, version: Version, outcome: RoundOutcome, sentence: str, shown: str
) -> None:
    watching.bare_round(watch, version, outcome=outcome, sentence=sentence)
    for address in ("/watches/", f"/watches/{watch.pk}/"):
        words = assert_is_page(signed_in.get(address))
        assert shown in words
        assert sentence in words


def test_a_round_that_left_no_sentence_still_has_a_headline(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.bare_round(watch, version, sentence="")
    page = signed_in.get(f"/watches/{watch.pk}/").content.decode()
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)
    assert heading[1].startswith("1.30.0 was judged against 1.29.0 on ")


def test_what_takes_many_words_follows_a_short_headline(signed_in: Client, watch: Watch, version: Version) -> None:
    told = "Whether 1.30.0 runs it slower than 1.29.0 is undecided (1 %, 95 % interval −3 to 6 %). Measure 40 rounds."
    watching.bare_round(watch, version, outcome=RoundOutcome.UNDECIDED, sentence=told)
    response = signed_in.get(f"/watches/{watch.pk}/")
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", response.content.decode())
    assert heading
    assert heading[1] == "Whether encoder v1 is slower with 1.30.0 than with 1.29.0 is undecided"
    assert "Measure 40 rounds." in assert_is_page(response)
    watching.bare_round(watch, version, key="call:1", state=RoundState.WAITING, outcome="", judged_at=None, sentence="")
    assert "Queued: 1.30.0 against 1.29.0 on encoder v1" in assert_is_page(signed_in.get(f"/watches/{watch.pk}/"))


def test_the_gravest_of_a_causes_rounds_stands_for_all(
    signed_in: Client, version: Version, node: Node, team: Team, owner: User
) -> None:
    other = rows.make_version(team, owner, name="decoder")
    watch = make_watch(version, owner, watched=[version.model, other.model])
    watching.bare_round(watch, version, key="release:1.30.0", outcome=RoundOutcome.INFRA, sentence="No node.")
    watching.bare_round(watch, other, key="release:1.30.0", outcome=RoundOutcome.QUIET)
    assert "1 watch: 1 could not measure" in assert_is_page(signed_in.get("/watches/"))
    watching.bare_round(watch, version, key="call:1", state=RoundState.WAITING, outcome="", judged_at=None, sentence="")
    assert "1 watch" in assert_is_page(signed_in.get("/watches/"))


def heading_of(client: Client, watch: Watch) -> str:
    return re.search(r"<h1[^>]*>(.*?)</h1>", client.get(f"/watches/{watch.pk}/").content.decode())[1]


def test_an_open_alert_leads_before_what_is_under_way_before_what_was_judged_last(
    signed_in: Client, watch: Watch, version: Version, owner: User
) -> None:
    now = timezone.now()
    newest = watching.bare_round(watch, version, sentence="The newest judged.", judged_at=now, new="1.30.0")
    watching.bare_round(watch, version, sentence="Judged before.", judged_at=now - timedelta(minutes=3))
    assert heading_of(signed_in, watch) == "The newest judged"
    run = rows.begin_run(version, owner)
    opened = {"judged_at": None, "outcome": "", "sentence": "", "run": run}
    watching.bare_round(watch, version, state=RoundState.MEASURING, new="1.31.1", **opened)
    assert heading_of(signed_in, watch) == "Queued: 1.31.1 against 1.29.0 on encoder v1"
    assert "measuring now" not in assert_is_page(signed_in.get("/watches/"))
    run.blocks.update(state=BlockState.LEASED)
    assert heading_of(signed_in, watch) == "Measuring 1.31.1 against 1.29.0 on encoder v1"
    assert "1 watch: 1 measuring now" in assert_is_page(signed_in.get("/watches/"))
    watching.bare_round(watch, version, state=RoundState.CONFIRMING, new="1.31.0", confirming=run, **opened)
    assert heading_of(signed_in, watch) == "Confirming 1.31.0 against 1.29.0 on encoder v1"
    watching.bare_alert(watch, version, sentence="It is refused. Take another.", round=newest)
    assert heading_of(signed_in, watch) == "It is refused"
    assert "1 watch: 1 with open alerts" in assert_is_page(signed_in.get("/watches/"))
    watching.bare_alert(watch, version, bad="1.31.1", sentence="It fails.")
    words = assert_is_page(signed_in.get(f"/watches/{watch.pk}/"))
    assert "1 more open alert. Confirming 1.31.0" in words
    Alert.objects.update(state=AlertState.RESOLVED)
    assert heading_of(signed_in, watch) == "Confirming 1.31.0 against 1.29.0 on encoder v1"


def test_the_last_result_is_that_of_the_round_that_was_judged_last(
    signed_in: Client, watch: Watch, version: Version
) -> None:
    """The page said "being measured" of a watch that had judged rounds."""

    def last_result() -> str:
        text = signed_in.get(f"/watches/{watch.pk}/").content.decode()
        return text.partition("<dt>Last round</dt>")[2].partition("</dd>")[0]

    opened = {"judged_at": None, "outcome": "", "sentence": "", "state": RoundState.MEASURING}
    watching.bare_round(watch, version, **opened)
    assert "<time" not in last_result()
    watching.bare_round(watch, version)
    assert "<time" in last_result()
    watching.bare_alert(watch, version)
    assert "<time" in last_result()


@pytest.mark.parametrize(
    ("state", "outcome", "shown"),
    [
        (RoundState.CONFIRMING, "", "being confirmed by run"),
        (RoundState.JUDGED, RoundOutcome.ALERT, " confirmed by run"),
        (RoundState.JUDGED, RoundOutcome.UNCONFIRMED, "not confirmed by run"),
        (RoundState.JUDGED, RoundOutcome.UNDECIDED, "measured again by run"),
    ],
)
def test_a_run_confirms_only_once_it_has(
    signed_in: Client, watch: Watch, version: Version, owner: User, state: RoundState, outcome: str, shown: str
) -> None:
    first, second = rows.begin_run(version, owner), rows.begin_run(version, owner)
    watching.bare_round(watch, version, state=state, outcome=outcome, run=first, confirming=second)
    words = assert_is_page(signed_in.get(f"/watches/{watch.pk}/"))
    assert f"run {first.pk} {shown.strip()} {second.pk}" in words


def test_a_failed_look_at_the_index_is_said(signed_in: Client, watch: Watch, settings: Settings) -> None:
    settings.INDEX_POLL_S = 900
    IndexLook.objects.create(
        distribution="onnxruntime", looked_at=watch.created_at, problem="The package index did not answer."
    )
    assert "the last time it failed: The package index did not answer." in assert_is_page(signed_in.get("/watches/"))
    settings.INDEX_POLL_S = 0
    assert "does not query the package index" in assert_is_page(signed_in.get(f"/watches/{watch.pk}/"))


def test_a_watchs_page_shows_rule_rounds_alerts_and_series(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.bare_round(watch, version)
    watching.bare_alert(watch, version)
    watching.long_series(watch, version, 12, step_at=8)
    response = signed_in.get(f"/watches/{watch.pk}/")
    words = assert_is_page(response)
    for part in (
        "latency more than 5.0 % slower, shown again by a fresh block",
        "1.29.0 → 1.30.0",
        "Acknowledge",
        "Run now",
        "threads: [1]",
    ):
        assert part in words, part
    assert 'id="figure-trend"' in response.content.decode()


def test_lists_cost_as_many_queries_for_many_watches_as_for_few(
    signed_in: Client, version: Version, owner: User, node: Node
) -> None:
    def add(number: int) -> None:
        watch = make_watch(version, owner, name=f"w{number}")
        watching.bare_round(watch, version)
        watching.bare_alert(watch, version)

    for number in range(2):
        add(number)
    few = count_queries(signed_in, "/watches/")
    for number in range(2, 9):
        add(number)
    assert count_queries(signed_in, "/watches/") == few <= 13
    assert count_queries(signed_in, f"/watches/{Watch.objects.first().pk}/") <= 19


# the form


def test_the_form_makes_a_watch(signed_in: Client, version: Version, team: Team, owner: User) -> None:
    channel = create_channel(team=team, by=owner, name="hook", kind="webhook", target="https://example.org/hook")
    assert "hook" in assert_is_page(signed_in.get(f"/watches/new/?model={version.model_id}"))
    given = form(version, channels=[str(channel.pk)], latency="7.5", kinds=["slower", "parity"], schedule="0 3 * * 1")
    response = signed_in.post("/watches/new/", given)
    watch = Watch.objects.get()
    assert response["Location"] == f"/watches/{watch.pk}/"
    assert (watch.name, watch.reference, watch.schedule) == ("upgrades", "1.29.0", "0 3 * * 1")
    assert (watch.rule.latency, watch.rule.kinds) == (0.075, ("slower", "parity"))
    assert (watch.on_release, watch.on_version, watch.with_prereleases) == (True, True, False)
    assert [*watch.watched.all()] == [version.model]
    assert [*watch.channels.all()] == [channel]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"models": []}, "models"),
        ({"models": ["999", "x", "9" * 30]}, "models"),
        ({"label": "x" * 101}, "label"),
        ({"reference": "1.99.0"}, "reference"),
        ({"reference": "latest"}, "reference"),
        ({"distribution": "onnxruntme"}, "reference"),
        ({"matrix": "runtme: [1]"}, "matrix"),
        ({"matrix": "runtime: [1.29.0]"}, "matrix"),
        ({"matrix": ""}, "matrix"),
        ({"matrix": "matrix: ["}, "matrix"),
        ({"schedule": "every day"}, "schedule"),
        ({"latency": "a lot"}, "latency"),
        ({"memory": "-1"}, "memory"),
        ({"session": "1e9"}, "session"),
        ({"kinds": []}, "kinds"),
        ({"kinds": ["nonsense"]}, "kinds"),
    ],
)
def test_a_bad_form_keeps_what_was_typed_and_marks_its_field(
    signed_in: Client, version: Version, changes: dict[str, Any], field: str
) -> None:
    given = form(version, **changes)
    response = signed_in.post("/watches/new/", given)
    assert response.status_code == 400
    text = response.content.decode()
    assert f'id="{field}-error"' in text
    assert text.count('class="error"') == 1
    for name in ("name", "label", "reference", "schedule", "latency", "memory"):
        assert f'value="{given[name]}"' in text, name
    assert given["matrix"] in html.unescape(text)
    assert not Watch.objects.exists()


def test_a_name_that_is_taken_is_said(signed_in: Client, watch: Watch, version: Version) -> None:
    response = signed_in.post("/watches/new/", form(version))
    assert response.status_code == 409
    assert "There is already a watch “upgrades”" in words_of(response)


def test_nobody_watches_another_teams_model(signed_in: Client, stranger: User) -> None:
    foreign = rows.make_version(stranger.memberships.get().team, stranger, name="secret")
    response = signed_in.post("/watches/new/", form(foreign))
    assert response.status_code == 400
    assert "secret" not in words_of(response)


def test_a_watch_is_changed_but_not_what_it_watches(signed_in: Client, watch: Watch) -> None:
    text = signed_in.get(f"/watches/{watch.pk}/edit/").content.decode()
    assert 'name="reference" size="14" required list="releases" value="1.29.0"' in text
    assert 'name="models"' not in text
    given = form(reference="1.30.0", latency="10", matrix="threads: [2]")
    given.pop("on_version")
    assert signed_in.post(f"/watches/{watch.pk}/edit/", given).status_code == 302
    watch.refresh_from_db()
    assert (watch.reference, watch.rule.latency, watch.on_version) == ("1.30.0", 0.1, False)
    assert watch.name == "upgrades"
    bad = signed_in.post(f"/watches/{watch.pk}/edit/", given | {"schedule": "x"})
    assert bad.status_code == 400
    assert 'value="x"' in bad.content.decode()


# orders


def test_run_now_orders_rounds(signed_in: Client, watch: Watch) -> None:
    words = assert_is_page(signed_in.post(f"/watches/{watch.pk}/run/", {"candidate": "", "baseline": ""}, follow=True))
    assert "1 round ordered: 1.29.0 → 1.31.1." in words
    assert WatchRound.objects.get().cause == "call"


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"candidate": "1.99.0", "baseline": ""}, "candidate", "does not exist"),
        ({"candidate": "1.30.0", "baseline": "0.1"}, "baseline", "does not exist"),
        ({"candidate": "1.29.0", "baseline": ""}, "candidate", "Both sides are 1.29.0"),
    ],
)
def test_a_bad_run_now_is_refused_beside_its_field(
    signed_in: Client, watch: Watch, given: dict[str, str], field: str, sentence: str
) -> None:
    response = signed_in.post(f"/watches/{watch.pk}/run/", given)
    assert response.status_code == 400
    assert sentence in words_of(response)
    assert f'id="{field}-error"' in response.content.decode()
    assert f'value="{given["candidate"]}"' in response.content.decode()


def test_a_watch_is_paused_resumed_and_removed(signed_in: Client, watch: Watch) -> None:
    assert "is paused." in assert_is_page(signed_in.post(f"/watches/{watch.pk}/pause/", follow=True))
    assert "paused" in assert_is_page(signed_in.get("/watches/"))
    assert "is resumed" in assert_is_page(signed_in.post(f"/watches/{watch.pk}/resume/", follow=True))
    assert "its runs are kept" in assert_is_page(signed_in.post(f"/watches/{watch.pk}/remove/", follow=True))
    assert "There is no watch" in assert_is_page(signed_in.get(f"/watches/{watch.pk}/"), 404)


def test_a_viewer_and_a_stranger_change_nothing(viewer: User, stranger: User, watch: Watch) -> None:
    client = client_of(viewer)
    assert "Run now" not in assert_is_page(client.get(f"/watches/{watch.pk}/"))
    for what in ("pause", "remove", "run"):
        assert_is_page(client.post(f"/watches/{watch.pk}/{what}/"), 403)
        assert_is_page(client_of(stranger).post(f"/watches/{watch.pk}/{what}/"), 404)
    watch.refresh_from_db()
    assert watch.is_active
    assert_is_page(client_of(viewer).post(f"/watches/{watch.pk}/explode/"), 404)


def test_the_list_of_models_shows_how_each_stands_by_its_slowest_series(
    signed_in: Client, watch: Watch, version: Version, team: Team, owner: User
) -> None:
    rows.make_version(team, owner, name="unwatched")
    assert assert_is_page(signed_in.get("/models/")).count("not watched") == 1
    watching.long_series(watch, version, 12, step_at=8)
    watching.long_series(watch, version, 12, step_at=99, series="s2", label="encoder, CPU, fp32, batch 8, 1 thread")
    response = signed_in.get("/models/")
    words, text = assert_is_page(response), response.content.decode()
    series = "encoder, CPU, fp32, batch 1, 1 thread on bench-1, against onnxruntime 1.29.0, of 2 series the slowest, 2"
    assert f'title="{series}' in text
    assert re.search(r"2[45] % slower", words)
    assert re.search(r'title="encoder[^"]*, with 1\.31\.1"', text)
    assert words.count("not watched") == 1
    assert len(re.findall(r'class="spark".*?points="([^"]+)"', text)) == 1
    assert f'href="/trends/?watch={watch.pk}&amp;series=s1%40bench-1"' in text
    watching.long_series(watch, version, 1, step_at=9, series="s3")
    assert "of 3 series the slowest" in signed_in.get("/models/").content.decode()


def test_the_form_offers_the_newest_models_and_those_that_are_ticked(
    signed_in: Client, version: Version, team: Team, owner: User
) -> None:
    for number in range(MODELS_OFFERED):
        rows.make_version(team, owner, name=f"newer-{number}")
    response = signed_in.get("/watches/new/")
    assert "1 more model not shown: use New watch" in assert_is_page(response)
    assert f'name="models" value="{version.model_id}"' not in response.content.decode()
    response = signed_in.get(f"/watches/new/?model={version.model_id}")
    assert "further model" not in assert_is_page(response)
    assert f'name="models" value="{version.model_id}" checked' in response.content.decode()
