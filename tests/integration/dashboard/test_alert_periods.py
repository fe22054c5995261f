"""Alerts of a period: what came in it, and how many of them chance alone would make; and watches headed by alerts."""

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
    assert "Chance alone would raise about 0.01 false alerts in so many comparisons." in words
    assert "assumes that 1 % of A/A pairs differ: 0 undisturbed A/A pairs of the team’s nodes are too few" in words
    [row] = table_rows(page, f"rounds-{version.model.team_id}")
    assert [*row[:2], row[3]] == [watch.name, "encoder v1", "1.29.0 → 1.30.0"]
    assert "encoder: 1.30.0 is 24.0 % slower than 1.29.0 1 new alert in the last 7 days" in words
    [row] = table_rows(page, "alert")
    assert f"alert {alert.pk}" in row[0]
    assert "2 new alerts in the last 30 days" in assert_is_page(signed_in.get("/alerts/?state=all&days=30"))
    assert "1 more open alert" in assert_is_page(signed_in.get("/alerts/?days=x"))


def test_the_old_address_of_the_digest_leads_to_its_period(signed_in: Client) -> None:
    assert signed_in.get("/alerts/digest/?days=30")["Location"] == "/alerts/?state=all&days=30"
    assert signed_in.get("/alerts/digest/?days=9")["Location"] == "/alerts/?state=all&days=7"


def test_watches_are_headed_by_the_gravest_alert_and_say_when_it_was_opened(
    signed_in: Client, watch: Watch, version: Version
) -> None:
    """The list said "Last, 1 minute ago" of an alert of five minutes ago, after a round that was judged later."""
    now = timezone.now()
    opened_at = now - timedelta(minutes=5)
    watching.bare_alert(watch, version, sentence="It is slower.", opened_at=opened_at)
    watching.bare_alert(watch, version, bad="1.31.0", sentence="It is a little slower.").symptoms.update(size=1.08)
    watching.bare_round(watch, version, judged_at=now)
    words = assert_is_page(signed_in.get("/watches/"))
    assert "encoder: 1.30.0 is 24.0 % slower than 1.29.0, 1 more open alert 1 watch: 1 with open alerts" in words
    assert f"{opened_at:%H:%M} UTC : It is slower." in words
    assert "It is slower 1 more open alert." in assert_is_page(signed_in.get(f"/watches/{watch.pk}/"))
