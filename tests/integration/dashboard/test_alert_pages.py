"""Alerts: the list and its triage, one alert with its evidence, and every form with good and bad input."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.views.alert import make_evidence_table, make_opening
from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Symptom, Watch
from farm.alerts.services import triage
from farm.alerts.states import AlertState, InvestigationState, RoundState
from farm.contract.api.alerts import AlertPageOut
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.wording import numbers
from farm.runs.models import Run
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, count_queries, table_rows, words_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def alert(watch: Watch, version: Version) -> Alert:
    return watching.bare_alert(watch, version)


def test_an_alert_opens_with_few_words_and_tells_the_rest_below(signed_in: Client, alert: Alert) -> None:
    measured = {"ratio": 1.24, "ci_low": 1.21, "ci_high": 1.26, "ci_level": 0.95, "rounds": 8, "verdict": "slower"}
    alert.symptoms.update(comparison={**measured, "baseline": "c1", "candidate": "c2", "margin": 0.02})
    shown = make_opening(alert)
    assert shown.headline == f"{alert.model.name}: {alert.bad} is 24 % slower than {alert.good}"
    assert shown.because == numbers.unbroken(
        "CPU, fp32, batch 1, 1 thread · 95 % interval 21–26 %, 8 rounds · Between 1.29.0 and 1.30.0 · "
        "LayerNormalization explains 96 % of the change"
    )
    assert shown.headline in assert_is_page(signed_in.get(f"/alerts/{alert.pk}/"))


def test_a_farm_whose_watch_confirms_a_change_is_not_told_to_make_a_watch(
    signed_in: Client, watch: Watch, version: Version
) -> None:
    watching.bare_round(watch, version, state=RoundState.CONFIRMING, judged_at=None)
    words = assert_is_page(signed_in.get("/alerts/"))
    assert "1 watch would open an alert here. 1 change is measured again before an alert opens." in words
    assert "Create a watch" not in words


def test_a_farm_without_alerts_says_how_to_get_told(signed_in: Client) -> None:
    response = signed_in.get("/alerts/")
    assert "No open alert" in assert_is_page(response)
    assert re.search(r'data-copy="onnxfarm watch add', response.content.decode())


@pytest.mark.parametrize(("bad_ms", "shown"), [(4.9834, ["3.2 ms", "5.0 ms"]), (4.4, ["left out", "left out"])])
def test_the_evidence_has_both_times_or_says_that_they_are_left_out(
    alert: Alert, bad_ms: float, shown: list[str]
) -> None:
    measured = {"ratio": 1.5652, "ci_low": 1.5579, "ci_high": 1.5739, "margin": 0.02, "rounds": 8, "verdict": "slower"}
    p50 = {**measured, "name": "p50_ms", "unit": "ms", "baseline": 3.1615, "candidate": bad_ms}
    sides = {"baseline": "c1", "candidate": "c2", "ci_level": 0.95}
    alert.symptoms.update(comparison={**measured, **sides, "metrics": [p50]})
    table = make_evidence_table(alert)
    texts = dict(zip([head.text for head in table.heads], [entry.text for entry in table.rows[0]], strict=True))
    assert [texts[alert.good], texts[alert.bad]] == shown


def test_alerts_are_a_table_of_what_changed_by_how_much_how_sure_and_through_what(
    signed_in: Client, watch: Watch, version: Version, team: Team, owner: User
) -> None:
    other = rows.make_version(team, owner, name="decoder")
    watching.bare_alert(watch, version, bad="1.31.1", first_bad="1.31.0")
    known = watching.bare_alert(watch, other, bad="1.30.0")
    measured = {"ratio": 1.24, "ci_low": 1.21, "ci_high": 1.26, "ci_level": 0.95, "rounds": 8}
    known.symptoms.update(comparison=measured)
    assert "decoder: 1.30.0 is 24 % slower than 1.29.0, 1 more open alert" in assert_is_page(signed_in.get("/alerts/"))
    row = table_rows(signed_in.get("/alerts/"), "alert")[0]
    assert row[:6] == [
        f"alert {known.pk}",
        "● open",
        "▲ slower",
        "24 % slower",
        "21–26 % slower",
        "decoder",
    ]
    why = "LayerNormalization explains 96 % of the change"
    assert row[6:9] == [why, "between 1.29.0 and 1.30.0", "bench-1"]
    assert "All measured with CPU, fp32, batch 1, 1 thread." in assert_is_page(signed_in.get("/alerts/"))
    # without an interval none is claimed
    first = table_rows(signed_in.get("/alerts/?sort=id"), "alert")[0]
    assert first[3:5] == ["24.0 % slower", ""]
    assert first[7] == "since 1.31.0 found in 1.31.1"


def test_chosen_alerts_are_acknowledged_together_and_those_of_others_are_not(
    signed_in: Client, watch: Watch, version: Version, viewer: User
) -> None:
    alerts = [watching.bare_alert(watch, version, bad=f"1.3{minor}.0") for minor in range(3)]
    chosen = [str(alert.pk) for alert in alerts[:2]]
    refused = client_of(viewer).post("/alerts/acknowledge/", {"alerts": chosen}, follow=True)
    assert "can view" in words_of(refused)
    response = signed_in.post("/alerts/acknowledge/", {"alerts": [*chosen, "x", ""], "next": "/alerts/?q=enc"})
    assert response["Location"] == "/alerts/?q=enc"
    states = [Alert.objects.get(pk=alert.pk).state for alert in alerts]
    assert states == [AlertState.ACKNOWLEDGED, AlertState.ACKNOWLEDGED, AlertState.OPEN]
    words = words_of(signed_in.post("/alerts/acknowledge/", {"next": "//elsewhere.example/"}, follow=True))
    assert "Select alerts first" in words


def test_chosen_alerts_are_acknowledged_all_or_none_of_them(
    signed_in: Client, watch: Watch, version: Version, owner: User
) -> None:
    first, second = (watching.bare_alert(watch, version, bad=f"1.3{minor}.0") for minor in range(2))
    words = words_of(signed_in.post("/alerts/acknowledge/", {"alerts": [str(first.pk), "999"]}, follow=True))
    assert "No alert was acknowledged. There is no alert 999 that you can access." in words
    triage.acknowledge(alert=second, by=owner)
    words = words_of(signed_in.post("/alerts/acknowledge/", {"alerts": [first.pk, second.pk]}, follow=True))
    assert "No alert was acknowledged." in words
    assert f"lert {second.pk} is acknowledged" in words
    first.refresh_from_db()
    assert (first.state, first.events.filter(kind="acknowledged").count()) == (AlertState.OPEN, 0)
    # without the one that refuses
    signed_in.post("/alerts/acknowledge/", {"alerts": [first.pk]})
    first.refresh_from_db()
    assert first.state == AlertState.ACKNOWLEDGED


def test_what_the_farm_could_not_measure_is_never_among_the_open_ones(
    signed_in: Client, watch: Watch, version: Version
) -> None:
    text = "The watch “upgrades” could not measure encoder v1 on onnxruntime==1.30.0: no node is online."
    broken = watching.bare_alert(watch, version, node="", state=AlertState.INFRA, sentence=text)
    words = assert_is_page(signed_in.get("/alerts/"))
    assert "No open alert 1 could not be measured" in words
    assert "no node is online" not in words
    assert text in assert_is_page(signed_in.get("/alerts/?state=infra"))
    page = assert_is_page(signed_in.get(f"/alerts/{broken.pk}/"))
    assert "could not measure" in page
    assert "the reason is given above" in page
    signed_in.post(f"/alerts/{broken.pk}/reopen/")
    for address in ("/alerts/", "/"):
        assert "encoder: could not be measured with 1.30.0" in assert_is_page(signed_in.get(address))


def test_each_list_holds_its_own(signed_in: Client, watch: Watch, version: Version) -> None:
    watching.bare_alert(watch, version, bad="1.30.0", snoozed_for="1.32.0")
    watching.bare_alert(watch, version, bad="1.31.0", state=AlertState.RESOLVED, resolved_in="1.31.1")
    watching.bare_alert(watch, version, bad="1.31.1", state=AlertState.INVALID, note="the machine was throttled")
    found = {name: len(re.findall('<tr id="alert-', _text(signed_in, name))) for name in ("open", "snoozed", "resolved",
             "invalid", "infra", "all", "nonsense")}  # fmt: skip
    assert found == {"open": 0, "snoozed": 1, "resolved": 1, "invalid": 1, "infra": 0, "all": 3, "nonsense": 0}
    assert "No results." in words_of(signed_in.get("/alerts/?state=all&q=zzz"))
    assert "No results." in words_of(signed_in.get("/alerts/?state=all&kind=parity"))
    assert "alert " in words_of(signed_in.get("/alerts/?state=all&kind=slower&sort=-change"))


def _text(client: Client, state: str) -> str:
    return client.get(f"/alerts/?state={state}").content.decode()


@pytest.mark.slow
def test_an_alert_says_who_by_how_much_since_when_through_what_and_the_way_round(
    signed_in: Client, version: Version, node: Node, owner: User
) -> None:
    alert = watching.found_by_a_watch(version, node, owner, matrix={"batch": [1, 8], "threads": [1]})
    with CaptureQueriesContext(connection) as captured:
        response = signed_in.get(f"/alerts/{alert.pk}/")
    assert len(captured) <= 18
    words, text = assert_is_page(response), response.content.decode()
    assert re.search(r"encoder: 1\.30\.0 is 2\d(\.\d)? % slower than 1\.29\.0", words)
    assert re.search(r"95 % interval [\d.]+–[\d.]+ %, \d+ rounds", words)
    assert "Since 1.30.0 · SkipLayerNormalization explains" in words
    assert re.search(r"SkipLayerNormalization: 2 nodes, [\d.]+ → [\d.]+ µs, explains (\d+ %|all)", words)
    assert f"Disabling {watching.WANTED} removes" in words
    assert "disabled_optimizers=[&#x27;BiasSoftmaxFusion&#x27;]" in text
    assert "Measured with and without it on 1.30.0: ▼ faster" in words
    assert "fused alike." in words
    assert "2 comparisons: 2 slower" in words
    symptom = alert.symptoms.first()
    assert f'href="/runs/{symptom.run_id}/cells/{symptom.cell}/"' in text
    assert 'id="figure-operators"' in text
    assert "Confirmation run" in words
    told = re.sub(r"[\d-]+ [\d:]+ UTC", "", words[words.index("Timeline") :])
    order = (
        "was measured against",
        "A second run confirmed it.",
        "The alert was opened.",
        "Bisection began",
        "answered",
    )
    assert [told.index(part) for part in order] == sorted(told.index(part) for part in order)
    # the p50 of both releases stand beside each other
    assert re.search(r"Of 1\.29\.0 1\.30\.0 rounds", words)
    assert f'href="/api/v1/alerts/{alert.pk}/report.zip"' in text
    # traces are of inferences: they say nothing of a change of session creation
    alert.symptoms.update(kind="session")
    assert 'id="figure-operators"' not in signed_in.get(f"/alerts/{alert.pk}/").content.decode()
    issue = signed_in.get(f"/api/v1/alerts/{alert.pk}/issue.md")
    assert (issue.status_code, issue["Content-Type"].partition(";")[0]) == (200, "text/markdown")


def test_the_list_takes_as_many_queries_for_many_alerts_as_for_few(signed_in: Client, watch: Watch, version: Version):
    for minor in range(2):
        watching.bare_alert(watch, version, bad=f"1.{minor}.0")
    few = count_queries(signed_in, "/alerts/")
    for minor in range(2, 30):
        watching.bare_alert(watch, version, bad=f"1.{minor}.0")
    assert count_queries(signed_in, "/alerts/") == few <= 9


def test_acknowledging_names_who_looks_at_it(signed_in: Client, alert: Alert, member: User) -> None:
    given = {"assignee": "member", "note": "is it the new kernel?"}
    response = signed_in.post(f"/alerts/{alert.pk}/acknowledge/", given, follow=True)
    words = assert_is_page(response)
    alert.refresh_from_db()
    assert (alert.state, alert.assignee) == (AlertState.ACKNOWLEDGED, member)
    assert "Acknowledged, assigned to member. is it the new kernel?" in words


def test_an_acknowledged_alert_is_given_to_somebody_else(signed_in: Client, alert: Alert, member: User) -> None:
    signed_in.post(f"/alerts/{alert.pk}/acknowledge/")
    words = assert_is_page(signed_in.post(f"/alerts/{alert.pk}/assign/", {"assignee": "member"}, follow=True))
    assert "Assigned to member by owner." in words
    alert.refresh_from_db()
    assert alert.assignee == member
    response = signed_in.post(f"/alerts/{alert.pk}/assign/", {"assignee": ""})
    assert response.status_code == 400
    assert 'id="assign-error"' in response.content.decode()


def test_an_order_from_the_list_leads_back_to_the_list(signed_in: Client, alert: Alert) -> None:
    response = signed_in.post(f"/alerts/{alert.pk}/acknowledge/", {"next": "/alerts/?q=enc"})
    assert response["Location"] == f"/alerts/?q=enc#alert-{alert.pk}"
    away = signed_in.post(f"/alerts/{alert.pk}/reopen/", {"next": "https://evil.example/"})
    assert away["Location"] == f"/alerts/{alert.pk}/"


def test_snoozing_until_a_day_or_a_release_silences_it(signed_in: Client, alert: Alert) -> None:
    day = f"{timezone.now() + timedelta(days=7):%Y-%m-%d}"
    assert "Snoozed until" in assert_is_page(
        signed_in.post(f"/alerts/{alert.pk}/snooze/", {"until": day, "release": ""}, follow=True)
    )
    signed_in.post(f"/alerts/{alert.pk}/snooze/", {"until": "", "release": "1.32.0"})
    alert.refresh_from_db()
    assert (alert.snoozed_for, alert.snoozed_until) == ("1.32.0", None)


def test_the_other_orders_change_it_and_stand_in_its_log(signed_in: Client, alert: Alert) -> None:
    for what, given, state in (
        ("note", {"note": "seen on another machine too"}, AlertState.OPEN),
        ("invalid", {"reason": "the machine was throttled"}, AlertState.INVALID),
        ("reopen", {"note": "it was not"}, AlertState.OPEN),
        ("infra", {"reason": "the disk was full"}, AlertState.INFRA),
    ):
        words = assert_is_page(signed_in.post(f"/alerts/{alert.pk}/{what}/", given, follow=True))
        alert.refresh_from_db()
        assert alert.state == state
        assert next(iter(given.values())) in words


@pytest.mark.parametrize(
    ("what", "given", "field"),
    [
        ("acknowledge", {"assignee": "nobody", "note": "a note"}, "acknowledge_assignee"),
        ("acknowledge", {"note": "x" * 4001}, "acknowledge_note"),
        ("snooze", {"until": "", "release": ""}, "snooze_until"),
        ("snooze", {"until": "tomorrow", "release": ""}, "snooze_until"),
        ("snooze", {"until": "2020-01-01", "release": ""}, "snooze_until"),
        ("snooze", {"until": "", "release": "latest"}, "snooze_release"),
        ("invalid", {"reason": "  "}, "invalid_reason"),
        ("infra", {"reason": ""}, "infra_reason"),
        ("note", {"note": ""}, "note_note"),
    ],
)
def test_a_bad_order_keeps_what_was_typed_and_says_it_beside_its_field(
    signed_in: Client, alert: Alert, what: str, given: dict[str, str], field: str
) -> None:
    response = signed_in.post(f"/alerts/{alert.pk}/{what}/", given)
    assert 400 <= response.status_code < 500
    text = response.content.decode()
    for value in filter(None, map(str.strip, given.values())):
        assert value in text or value == "nobody"
    assert response.context["errors"].keys() == {field}
    assert text.count('class="error"') == 1
    alert.refresh_from_db()
    assert alert.state == AlertState.OPEN


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"good": "9.9.9", "bad": "1.30.0"}, "since_when_good"),
        ({"good": "1.29.0", "bad": "9.9.9"}, "since_when_bad"),
        ({"good": "1.31.1", "bad": "1.29.0"}, "since_when_bad"),
    ],
)
def test_a_bad_bisection_is_refused_beside_its_field(
    signed_in: Client, alert: Alert, run: Run, given: dict[str, str], field: str
) -> None:
    alert.symptoms.update(run=run)
    response = signed_in.post(f"/alerts/{alert.pk}/since_when/", given)
    assert response.status_code == 400
    assert response.context["errors"].keys() == {field}
    assert f'value="{given["good"]}"' in response.content.decode()


def test_a_bisection_is_asked_for_once(signed_in: Client, alert: Alert, run: Run) -> None:
    alert.symptoms.update(run=run)
    words = assert_is_page(signed_in.post(f"/alerts/{alert.pk}/since_when/", {"good": "", "bad": ""}, follow=True))
    assert "Bisection started" in words
    assert "0 steps measured." in words
    again = signed_in.post(f"/alerts/{alert.pk}/since_when/", {"good": "1.29.0", "bad": "1.31.1"})
    assert again.status_code == 409


def test_a_first_bad_release_that_is_not_known_says_why_and_what_to_do(
    signed_in: Client, alert: Alert, run: Run, viewer: User
) -> None:
    alert.symptoms.update(run=run)
    words = assert_is_page(page := signed_in.get(f"/alerts/{alert.pk}/"))
    assert "not known yet. Bisect" in words
    assert 'href="#since"' in page.content.decode()
    assert "not known: no bisection was run" in assert_is_page(client_of(viewer).get(f"/alerts/{alert.pk}/"))
    signed_in.post(f"/alerts/{alert.pk}/since_when/", {"good": "", "bad": ""})
    assert "Bisecting… See progress" in assert_is_page(signed_in.get(f"/alerts/{alert.pk}/"))
    asked = alert.investigations.get()
    asked.state, asked.sentence = InvestigationState.FAILED, "No node offers the releases between them."
    asked.save()
    words = assert_is_page(signed_in.get(f"/alerts/{alert.pk}/"))
    assert "not found. See why, or bisect again" in words
    assert "No node offers the releases between them." in words
    asked.state, asked.answer = InvestigationState.ANSWERED, {"first_bad": "1.30.0", "is_exact": False}
    asked.save()
    assert "1.30.0 at the latest; see the measurements" in assert_is_page(signed_in.get(f"/alerts/{alert.pk}/"))


def test_an_older_candidate_is_not_asked_since_when(signed_in: Client, watch: Watch, version: Version) -> None:
    older = watching.bare_alert(watch, version, bad="1.20.0")
    words = assert_is_page(page := signed_in.get(f"/alerts/{older.pk}/"))
    assert "not applicable: 1.20.0 is older than" in words
    assert "/since_when/" not in page.content.decode()


def test_what_has_no_run_cannot_be_measured_again(signed_in: Client, alert: Alert) -> None:
    response = signed_in.post(f"/alerts/{alert.pk}/work_around/", {"optimizers": "A, B"})
    assert response.status_code == 409
    assert "no runs left to measure again" in words_of(response)
    assert 'value="A, B"' in response.content.decode()


def test_a_viewer_looks_but_changes_nothing(viewer: User, alert: Alert) -> None:
    client = client_of(viewer)
    assert "Mark as false positive" not in assert_is_page(client.get(f"/alerts/{alert.pk}/"))
    assert "Acknowledge" not in assert_is_page(client.get("/alerts/"))
    response = client.post(f"/alerts/{alert.pk}/invalid/", {"reason": "no"})
    assert response.status_code == 403
    assert "You can view alert" in words_of(response)


def test_a_stranger_and_a_wrong_order_find_nothing(signed_in: Client, stranger: User, alert: Alert) -> None:
    client = client_of(stranger)
    assert "There is no alert" in assert_is_page(client.get(f"/alerts/{alert.pk}/"), 404)
    assert_is_page(client.post(f"/alerts/{alert.pk}/invalid/", {"reason": "mine"}), 404)
    assert "encoder" not in assert_is_page(client.get("/alerts/?state=all"))
    assert_is_page(signed_in.post(f"/alerts/{alert.pk}/explode/"), 404)
    assert_is_page(signed_in.get("/alerts/999/"), 404)
    assert signed_in.get(f"/alerts/{alert.pk}/invalid/").status_code == 405


def test_what_others_wrote_is_never_markup(signed_in: Client, watch: Watch, version: Version) -> None:
    alert = watching.bare_alert(watch, version, sentence="<script>alert(1)</script> is slower.")
    for address in ("/alerts/", f"/alerts/{alert.pk}/", "/"):
        assert "<script>alert(1)" not in signed_in.get(address).content.decode()


def test_an_alert_names_the_operator_of_the_change_it_leads_with_everywhere(
    signed_in: Client, alert: Alert, version: Version
) -> None:
    """The smaller change of another series was found first; its traces named another operator."""
    (first,) = alert.symptoms.all()
    Symptom.objects.filter(pk=first.pk).update(size=1.1, explanation="MatMul: 14 nodes, explains 59 % of the change")
    Symptom.objects.create(
        alert=alert, node=alert.node, series="s2", kind="slower", label=f"{version.model.name}, CPU, int8, batch 1",
        text="It is 34 % slower.", size=1.34, baseline="c3", cell="c4",
        explanation="SkipLayerNormalization: 4 nodes, explains 90 % of the change",
    )  # fmt: skip
    (row,) = table_rows(signed_in.get("/alerts/"), "alert")
    assert ("SkipLayerNormalization" in row[6], "MatMul" in row[6]) == (True, False)
    said = make_opening(Alert.objects.get(pk=alert.pk)).because
    assert ("SkipLayerNormalization" in said, "MatMul" in said) == (True, False)
    told = AlertPageOut.model_validate(signed_in.get(f"/api/v1/alerts/{alert.pk}").json())
    assert [symptom.series for symptom in told.symptoms] == ["s2", "s1"]
