"""Calls of a watch whose candidate is older than what it is compared with: what if we went back?"""

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.alerts.models import Alert, Point, Watch, WatchRound
from farm.alerts.selectors.badges import describe_model_status
from farm.alerts.services import triage
from farm.alerts.services.causes import call_watch
from farm.alerts.services.investigations import start_bisection
from farm.alerts.states import AlertState, InvestigationState, RoundOutcome
from farm.base.refusals import Invalid
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.integration.alerts.driving import Lab, failing_on, offer
from tests.integration.dashboard.conftest import client_of

pytestmark = pytest.mark.django_db


def call(watch: Watch, by: User, lab: Lab, **sides: str) -> RoundOutcome:
    """Call the watch and wait for the round's end."""
    (one,) = call_watch(watch=watch, by=by, **sides)
    lab.live()
    return RoundOutcome(WatchRound.objects.get(pk=one.pk).outcome)


def kinds(alert: Alert) -> list[str]:
    return list(alert.events.values_list("kind", flat=True))


def test_one_that_is_slower_opens_an_alert_with_a_point_and_a_look_for_switches(watch: Watch, node: Node, member: User):
    lab = Lab(node, p50_ms=lambda spec: 1.24 if spec.runtime.version == "1.27.0" else 1.0)
    assert call(watch, member, lab, candidate="1.27.0") == RoundOutcome.ALERT
    one = WatchRound.objects.get()
    assert (one.old, one.new, one.confirming is not None) == ("1.29.0", "1.27.0", True)
    alert = Alert.objects.get()
    assert (alert.state, alert.good, alert.bad, alert.node) == (AlertState.OPEN, "1.29.0", "1.27.0", "bench-1")
    assert alert.sentence.startswith("ONNX Runtime 1.27.0 runs encoder (CPU, fp32, batch 1, 1 thread) 2")
    assert "slower than 1.29.0 on bench-1" in alert.sentence
    symptom = alert.symptoms.get()
    assert (symptom.comparison["verdict"], symptom.comparison["ratio"]) == ("slower", symptom.size)
    assert symptom.size == pytest.approx(1.24, rel=0.03)
    tried = alert.investigations.get()
    assert (tried.kind, tried.state) == ("work_around", InvestigationState.ANSWERED)
    point = Point.objects.get()
    assert (point.runtime, point.ratio) == ("onnxruntime==1.27.0", pytest.approx(1.24, rel=0.03))


def test_one_that_is_faster_is_news(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, p50_ms=lambda spec: 1.24 if spec.runtime.version == "1.29.0" else 1.0)
    assert call(watch, member, lab, candidate="1.27.0") == RoundOutcome.NEWS
    assert Alert.objects.count() == 0


def test_the_same_call_again_is_seen_again_and_told_once(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, checks=failing_on("1.27.0"))
    assert call(watch, member, lab, candidate="1.27.0") == RoundOutcome.ALERT
    assert call(watch, member, lab, candidate="1.27.0") == RoundOutcome.ALERT
    alert = Alert.objects.get()
    assert kinds(alert) == ["opened", "seen_again"]
    # the model stands where it stood: nobody has gone back yet
    assert describe_model_status(alert.model).text == "no result yet"
    with pytest.raises(Invalid, match="cannot be bisected"):
        start_bisection(alert=alert, by=member)
    with pytest.raises(Invalid, match="swap them"):
        start_bisection(alert=alert, by=member, good="1.30.0", bad="1.29.0")


def test_an_older_release_that_is_known_not_to_load_the_model_opens_no_alert(
    watch: Watch, version: Version, node: Node, member: User
) -> None:
    version.inspection = {**version.inspection, "opsets": {"": 23}}
    version.save(update_fields=["inspection"])
    assert call(watch, member, Lab(node), candidate="1.22.0") == RoundOutcome.UNDECIDED
    one = WatchRound.objects.get()
    assert (Alert.objects.count(), one.confirming, one.compared) == (0, None, 0)
    assert "opset 23 needs ONNX Runtime ≥ 1.23" in one.sentence


def test_an_older_release_that_fails_is_no_regression_to_file(
    watch: Watch, node: Node, member: User, client: Client, owner: User
) -> None:
    call(watch, member, Lab(node, checks=failing_on("1.27.0")), candidate="1.27.0")
    alert = Alert.objects.get()
    issue = client.get(f"/api/v1/alerts/{alert.pk}/issue.md").content.decode()
    assert issue.startswith("# fails: onnxruntime==1.27.0 compared with 1.29.0")
    page = client_of(owner).get(f"/alerts/{alert.pk}/").content.decode()
    assert "onnxfarm bisect" not in page
    assert "1.27.0 was tried against 1.29.0" in page


def test_what_was_laid_to_a_machine_is_told_when_it_is_found_again_and_what_is_invalid_is_not(
    watch: Watch, node: Node, member: User
) -> None:
    lab = Lab(node, checks=failing_on("1.27.0"))
    call(watch, member, lab, candidate="1.27.0")
    triage.mark_infra(alert=Alert.objects.get(), by=member, reason="the disk was full")
    call(watch, member, lab, candidate="1.27.0")
    alert = Alert.objects.get()
    assert (alert.state, kinds(alert)) == (AlertState.OPEN, ["opened", "infra", "reopened"])
    triage.mark_invalid(alert=alert, by=member, reason="it never ran there")
    call(watch, member, lab, candidate="1.27.0")
    alert.refresh_from_db()
    assert (alert.state, kinds(alert)[3:]) == (AlertState.INVALID, ["invalid", "seen_again"])


def test_going_back_and_going_on_are_shifts_of_their_own(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, checks=failing_on("1.27.0", "1.30.0"))
    call(watch, member, lab, candidate="1.27.0")
    offer("1.29.0", "1.30.0")
    lab.live()
    found = Alert.objects.order_by("pk")
    assert [(one.good, one.bad) for one in found] == [("1.29.0", "1.27.0"), ("1.29.0", "1.30.0")]


def test_a_release_that_is_bad_already_stays_one_alert_from_either_side(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, checks=failing_on("1.30.0"))
    offer("1.29.0", "1.30.0")
    lab.live()
    call(watch, member, lab, baseline="1.31.0", candidate="1.30.0")
    alert = Alert.objects.get()
    assert (alert.good, alert.bad) == ("1.29.0", "1.30.0")
    assert kinds(alert) == ["opened", "explained", "seen_again"]


def test_what_was_resolved_does_not_come_back_by_going_back(watch: Watch, node: Node, member: User) -> None:
    lab = Lab(node, checks=failing_on("1.27.0", "1.30.0"))
    offer("1.29.0", "1.30.0")
    lab.live()
    offer("1.29.0", "1.30.0", "1.31.0")
    lab.live()
    resolved = Alert.objects.get()
    assert (resolved.state, resolved.resolved_in) == (AlertState.RESOLVED, "1.31.0")
    call(watch, member, lab, baseline="1.31.0", candidate="1.27.0")
    resolved.refresh_from_db()
    assert resolved.state == AlertState.RESOLVED
    assert [one.bad for one in Alert.objects.order_by("pk")] == ["1.30.0", "1.27.0"]
