"""A watch that compares each new version of a model with the one before, in one block, and what alerts of it."""

import re
from collections.abc import Callable

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Investigation, Watch, WatchRound
from farm.alerts.selectors.badges import describe_model_status
from farm.alerts.selectors.releases import last_release
from farm.alerts.states import VERSIONS, RoundOutcome
from farm.contract import reports
from farm.contract.blocks import Lease
from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from tests.integration.alerts.driving import Lab, make_watch, offer
from tests.integration.dashboard.rows import make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def watch(version: Version, member: User, node: Node) -> Watch:
    offer("1.29.0")
    return make_watch(version, member, compares_versions=True, on_version=False, on_release=False)


@pytest.fixture
def newer(watch: Watch, team: Team, owner: User) -> Version:
    """Uploaded after the watch was made."""
    return make_version(team, owner, number=2)


def slower_by(version: Version, factor: float) -> Callable[[CellSpec], float]:
    digest = version.artifact.bundle.digest
    return lambda spec: factor if spec.artifact_sha256 == digest else 1.0


class Wrong(Lab):
    """The outputs of the second arm have NaN where those of the first have none."""

    def _engines(self, lease: Lease) -> reports.EnginesReport:
        output = reports.OutputParity(
            name="y", dtype="float32", shape=(1, 8), reference_shape=(1, 8), nan_count=3, violations=3, elements=8
        )
        return reports.EnginesReport(pairs=(reports.EnginePair(one=0, other=1, outputs=(output,)),))


def test_a_slower_version_alerts_once_it_was_shown_again(lab: Lab, watch: Watch, newer: Version) -> None:
    lab.latency = slower_by(newer, 1.24)
    lab.live()
    alert = Alert.objects.get()
    assert (alert.distribution, alert.good, alert.bad, alert.version) == (VERSIONS, "1", "2", newer)
    assert [symptom.kind for symptom in alert.symptoms.all()] == ["slower"]
    watched = WatchRound.objects.get()
    assert (watched.outcome, watched.confirming is not None, watched.points.count()) == (RoundOutcome.ALERT, True, 0)
    assert [beside.version.number for beside in Run.objects.order_by("pk")[0].beside.all()] == [1]
    # a bisection looks for releases
    assert not Investigation.objects.exists()
    assert last_release(watch, newer.model) == watch.reference
    assert describe_model_status(newer.model).text == "slower between version 1 and version 2"


def test_a_wrong_version_alerts_by_its_outputs(node: Node, watch: Watch, newer: Version) -> None:
    Wrong(node).live()
    assert [symptom.kind for symptom in Alert.objects.get().symptoms.all()] == ["parity"]


def test_an_equal_version_alerts_nobody(lab: Lab, watch: Watch, newer: Version) -> None:
    lab.live()
    assert (WatchRound.objects.get().outcome, Alert.objects.count()) == (RoundOutcome.QUIET, 0)


def test_each_version_is_compared_with_the_one_before_it_once(
    lab: Lab, watch: Watch, newer: Version, team: Team, owner: User
) -> None:
    lab.live()
    make_version(team, owner, number=3)
    lab.live()
    lab.live()
    assert list(WatchRound.objects.order_by("pk").values_list("old", "new")) == [("1", "2"), ("2", "3")]


def test_the_first_version_and_one_with_the_same_files_are_compared_with_nothing(
    lab: Lab, watch: Watch, newer: Version, team: Team, owner: User, version: Version
) -> None:
    Version.objects.filter(pk=newer.pk).update(artifact=version.artifact)
    make_watch(version, owner, name="all", compares_versions=True, on_version=False, on_release=False)
    make_version(team, owner, name="other")
    lab.live()
    assert not WatchRound.objects.exists()


def test_the_pages_say_what_became_of_a_version(
    lab: Lab, watch: Watch, newer: Version, member: User, client: Client
) -> None:
    lab.latency = slower_by(newer, 1.24)
    lab.live()
    browser = Client()
    browser.force_login(member)
    shown = browser.get(f"/models/{newer.model_id}/").content.decode()
    # with its setting, since the headline may be of another
    assert re.search(r"slower than version 1</a>[^,]{0,60}, CPU, fp32, .{0,40}run \d", shown, re.DOTALL)
    page = browser.get(f"/alerts/{Alert.objects.get().pk}/").content.decode()
    assert "not applicable: versions of the model were compared" in page
    answer = client.post(f"/api/v1/alerts/{Alert.objects.get().pk}/bisections", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "versions")
    report = client.get(f"/api/v1/alerts/{Alert.objects.get().pk}/report.zip")
    assert (report.status_code, report.json()["code"]) == (409, "versions")


def test_a_watch_takes_no_models_in_its_matrix(version: Version, member: User, client: Client) -> None:
    order = {"name": "own", "reference": "1.29.0", "models": [version.model_id], "matrix": {"models": "previous"}}
    answer = client.post("/api/v1/watches", order, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "matrix")


def test_the_setting_is_kept_by_the_api(version: Version, member: User, client: Client) -> None:
    order = {"name": "own", "reference": "1.29.0", "models": [version.model_id], "compares_versions": True}
    made = client.post("/api/v1/watches", order, content_type="application/json").json()
    assert (made["compares_versions"], Watch.objects.get(pk=made["id"]).compares_versions) == (True, True)
