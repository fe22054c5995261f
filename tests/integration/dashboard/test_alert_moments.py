"""What an alert's page says of moments: measured when it was, being measured while a node does."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.reading.alert_timeline import list_timeline
from farm.accounts.models import User
from farm.alerts.models import Alert, Watch
from farm.api.bisections import shape_investigation
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.states import BlockState
from tests.integration.dashboard import rows, watching

pytestmark = pytest.mark.django_db


def test_a_release_is_measured_only_while_a_node_measures_it(
    signed_in: Client, watch: Watch, version: Version, owner: User
) -> None:
    """It was "being measured" while its run waited for a node."""
    alert = watching.bare_alert(watch, version)
    run = rows.begin_run(version, owner)
    search = {"kind": "since_when", "state": "measuring", "symptom": alert.symptoms.get(), "asked": {"probe": "1.31.0"}}
    bisection = alert.investigations.create(
        run=run, **search, steps=[{"version": "1.30.0", "outcome": "good", "minutes": 1.36}]
    )
    # it said "1 run in 1.36 min"
    assert "Bisection began: 1 run in 1 min 22 s." in [entry.text for entry in list_timeline(alert)]

    def since() -> str:
        text = signed_in.get(f"/alerts/{alert.pk}/").content.decode()
        return text[text.index('id="since"') : text.index('id="way-round"')]

    assert "1.31.0 waits to be measured" in since()
    assert "measuring</span>" not in since()
    # a terminal prints the same
    assert shape_investigation(bisection).sentence == "1 step measured; 1.31.0 waits to be measured."
    run.blocks.update(state=BlockState.LEASED)
    assert "1.31.0 is being measured" in since()
    assert "measuring</span>" in since()


def test_a_timeline_says_measured_when_it_was(watch: Watch, version: Version, owner: User) -> None:
    """It said so of the moment at which the run was queued."""
    queued_at = timezone.now() - timedelta(minutes=40)
    run = rows.begin_run(version, owner)
    found = watching.bare_round(watch, version, created_at=queued_at, run=run)
    Run.objects.filter(pk=run.pk).update(finished_at=queued_at + timedelta(minutes=20))
    alert = watching.bare_alert(watch, version, round=found)
    measured = next(entry for entry in list_timeline(Alert.objects.get(pk=alert.pk)) if entry.run == run.pk)
    assert measured.at == queued_at + timedelta(minutes=20)
