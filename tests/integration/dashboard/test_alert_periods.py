"""Alerts of a period: what came in it, and how many of them chance alone would make."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from farm.alerts.models import Alert, Watch
from farm.registry.models import Version
from tests.integration.dashboard import watching
from tests.integration.dashboard.pages import assert_is_page, table_rows

pytestmark = pytest.mark.django_db


def test_a_period_shows_what_came_in_it_and_how_many_false_alerts_to_expect(
    signed_in: Client, watch: Watch, version: Version
) -> None:
    watching.bare_round(watch, version, compared=400)
    alert, old = watching.bare_alert(watch, version), watching.bare_alert(watch, version, bad="1.31.0")
    Alert.objects.filter(pk=old.pk).update(opened_at=timezone.now() - timedelta(days=8))
    page = signed_in.get("/alerts/?state=all&days=7")
    words = assert_is_page(page)
    assert "1 round with 400 comparisons: 1 new alert, 2 open, 0 marked as false positives." in words
    assert "By chance alone, about 0.01 of these comparisons would alert" in words
    assert "0 undisturbed A/A pairs of the team’s nodes are too few" in words
    assert "1 new alert in the last 7 days" in words
    [row] = table_rows(page, f"rounds-{version.model.team_id}")
    assert [*row[:2], row[3]] == [watch.name, "encoder v1", "1.29.0 → 1.30.0"]
    [row] = table_rows(page, "alert")
    assert f"alert {alert.pk}" in row[0]
    assert "2 new alerts in the last 30 days" in assert_is_page(signed_in.get("/alerts/?state=all&days=30"))
    assert "1 more open alert" in assert_is_page(signed_in.get("/alerts/?days=x"))


def test_the_old_address_of_the_digest_leads_to_its_period(signed_in: Client) -> None:
    assert signed_in.get("/alerts/digest/?days=30")["Location"] == "/alerts/?state=all&days=30"
    assert signed_in.get("/alerts/digest/?days=9")["Location"] == "/alerts/?state=all&days=7"
