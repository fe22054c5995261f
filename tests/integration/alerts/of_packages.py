"""What a farm makes of the package of docs/extending.md: run by test_outside_packages.py, in a process that has it.

A made-up node measures; what judges, alerts, delivers and shows is the farm.
"""

import json
from collections.abc import Iterator
from math import exp

import pytest
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Channel, Delivery, Watch
from farm.alerts.services import channels, deliveries
from farm.alerts.states import DeliveryState
from farm.contract.blocks import ArmOrder
from farm.contract.cells import CellSpec
from farm.contract.reports import CheckReport, Sample
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.rules.changes.watch_rounds import Rule
from tests.integration.alerts.driving import Lab, make_watch, offer
from tests.integration.alerts.receiver import Receiver, receiving
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db
OLD, NEW = "1.29.0", "1.30.0"


class Card(Lab):
    """A node on which the new release waits three times as long for the card, and has outputs that pass and drift."""

    def _check(self, arm: ArmOrder) -> CheckReport:
        told, grown = super()._check(arm), 8.0 if arm.cell.runtime.version == NEW else 1.0
        outputs = [one.model_copy(update={"rmse": (one.rmse or 0.0) * grown}) for one in told.outputs]
        return told.model_copy(update={"outputs": tuple(outputs)})

    def _sample(self, spec: CellSpec) -> Sample:
        waited_ms = (3.0 if spec.runtime.version == NEW else 1.0) * exp(self.random.gauss(0, 0.005))
        return super()._sample(spec).model_copy(update={"metrics": {"acme_wait_ms": waited_ms}})


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    with receiving() as one:
        yield one


@pytest.fixture
def pager(team: Team, owner: User, receiver: Receiver) -> Channel:
    target = receiver.url.replace("team=1", "key=s3cret")
    return channels.create_channel(team=team, by=owner, name="on call", kind="acme-pager", target=target)


@pytest.fixture
def watch(node: Node, version: Version, member: User, pager: Channel) -> Watch:
    offer(OLD, NEW)
    made = make_watch(version, member)
    Card(node).live()
    return made


@pytest.fixture
def alert(watch: Watch) -> Alert:
    return Alert.objects.get(watch=watch)


def test_its_metric_has_a_verdict_and_alerts_as_its_kind_of_change(alert: Alert) -> None:
    symptoms = {symptom.kind: symptom for symptom in alert.symptoms.all()}
    assert set(symptoms) == {"waits", "drift"}
    metrics = {change["name"]: change for change in symptoms["waits"].comparison["metrics"]}
    assert metrics["acme_wait_ms"]["verdict"] == "slower"
    assert symptoms["waits"].size == pytest.approx(3.0, rel=0.02)
    assert "wait for the card" in symptoms["waits"].text


def test_a_noisy_change_was_confirmed_by_a_fresh_block(alert: Alert) -> None:
    assert alert.round is not None
    assert alert.round.confirming is not None


def test_its_channel_delivers_the_notice(alert: Alert, pager: Channel, receiver: Receiver) -> None:
    (delivery,) = Delivery.objects.filter(channel=pager, kind="alert.opened")
    assert deliveries.deliver(delivery.pk)
    delivery.refresh_from_db()
    (_, body), told = receiver.seen[0], json.loads(receiver.seen[0][1])
    assert (delivery.state, told["id"], told["summary"]) == (DeliveryState.SENT, delivery.message_id, delivery.subject)
    assert "wait for the card" in told["details"]
    assert b"s3cret" not in body


def test_pages_show_them_under_their_words(alert: Alert, pager: Channel, owner: User, watch: Watch) -> None:
    browser = client_of(owner)
    shown = assert_is_page(browser.get(f"/alerts/{alert.pk}/"))
    assert "waits longer" in shown
    assert "drifting outputs" in shown
    listed = assert_is_page(browser.get("/alerts/?kind=waits"))
    assert f"alert {alert.pk}" in listed
    assert f"alert {alert.pk}" not in assert_is_page(browser.get("/alerts/?kind=memory"))
    settings = assert_is_page(browser.get("/settings/channels/"))
    assert "Acme Pager: the https:// address of a pager" in settings
    assert "s3cret" not in settings
    assert "waits longer" in assert_is_page(browser.get(f"/watches/{watch.pk}/edit/"))
    symptom = alert.symptoms.get(kind="waits")
    cell = assert_is_page(browser.get(f"/runs/{symptom.run_id}/cells/{symptom.cell}/"))
    assert "wait for the card" in cell.lower()


def test_the_api_and_rules_name_them(alert: Alert, member_api: Client) -> None:
    told = member_api.get(f"/api/v1/alerts/{alert.pk}").json()
    assert {symptom["kind"] for symptom in told["symptoms"]} == {"waits", "drift"}
    rule = Rule.model_validate({"kinds": ["waits", "drift"]})
    assert [line.split()[0] for line in rule.describe_kinds()] == ["a", "outputs"]
    order = Rule().kinds
    assert order.index("waits") + 1 == order.index("session")
    assert order[-1] == "drift"
