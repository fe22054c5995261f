"""The search over everything, on its page, in the dialog and over the API; and the badge of open alerts."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.alerts.models import Alert, Watch
from farm.fleet.models import Node
from farm.registry.models import Model, Version
from farm.runs.models import Run
from tests.integration.alerts.driving import make_watch, offer
from tests.integration.dashboard import rows, watching
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, table_rows, words_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def watch(version: Version, owner: User, node: Node) -> Watch:
    offer("1.29.0", "1.30.0")
    return make_watch(version, owner)


@pytest.fixture
def farm(watch: Watch, version: Version, team: Team, owner: User) -> Run:
    """A model, a node, a watch, an alert and a run."""
    rows.make_version(team, owner, name="encoder-old")
    watching.bare_alert(watch, version)
    return Run.objects.create(team=team, version=version, requested_by=owner, matrix={}, state="finished")


def kinds(client: Client, words: str) -> list[str]:
    return [f"{one['kind']} {one['name']}" for one in client.get("/api/v1/search", {"q": words}).json()]


def test_names_numbers_and_digests_are_all_found(signed_in: Client, farm: Run, version: Version, node: Node) -> None:
    assert kinds(signed_in, "ENCOD") == ["model encoder", "model encoder-old"]
    assert kinds(signed_in, f"run {farm.pk}") == [f"run run {farm.pk}"]
    assert f"run run {farm.pk}" in kinds(signed_in, str(farm.pk))
    assert kinds(signed_in, f"Alert #{Alert.objects.get().pk}")[0].startswith("alert alert")
    assert kinds(signed_in, node.name) == ["node bench-1"]
    assert kinds(signed_in, "upgrades") == ["watch upgrades"]
    sha256 = version.artifact.sha256
    for digest in (
        sha256,
        sha256[:12],
        sha256[:6].upper(),
        f"sha256:{sha256}",
        version.artifact.files.get().blob.sha256,
    ):
        assert kinds(signed_in, digest) == ["version encoder v1"], digest


@pytest.mark.parametrize(
    "words", ["", "   ", "%", "_", "run 999999999999999999", "run", "' OR 1=1", "abcde", "x" * 100, "🦊", "\\", "ſ"]
)
def test_what_fits_nothing_finds_nothing(signed_in: Client, farm: Run, words: str) -> None:
    assert kinds(signed_in, words) == []
    assert_is_page(signed_in.get("/search/", {"q": words}))


def test_a_text_that_is_too_long_is_refused_by_the_api_and_cut_by_the_page(signed_in: Client, farm: Run) -> None:
    assert signed_in.get("/api/v1/search", {"q": "x" * 101}).status_code == 422
    assert_is_page(signed_in.get("/search/", {"q": "x" * 5000}))


def test_others_find_nothing_of_a_team(stranger: User, farm: Run, version: Version, node: Node) -> None:
    client = client_of(stranger)
    for words in ("encoder", str(farm.pk), f"run {farm.pk}", version.artifact.sha256, node.name, "upgrades"):
        assert kinds(client, words) == [], words


def test_what_fits_alone_is_opened_and_several_are_listed(signed_in: Client, farm: Run) -> None:
    assert signed_in.get("/search/", {"q": f"run {farm.pk}"})["Location"] == f"/runs/{farm.pk}/"
    words = assert_is_page(signed_in.get("/search/", {"q": "encod"}))
    assert re.search(r"2 results and \d+ documents for “encod”", words)
    # as the list of models shows them
    rows_of_models = table_rows(signed_in.get("/search/", {"q": "encod"}), "models")
    assert [row[0] for row in rows_of_models] == ["encoder", "encoder-old"]
    assert rows_of_models[0][1].startswith(f"run {farm.pk}")
    assert "No results for “zzz”." in assert_is_page(signed_in.get("/search/", {"q": "zzz"}))
    part = signed_in.get("/search/", {"q": "encod"}, headers={"hx-request": "true"})
    assert "<html" not in part.content.decode()


def test_what_was_deleted_is_not_found(signed_in: Client, farm: Run) -> None:
    Model.objects.filter(name="encoder-old").update(removed_at=timezone.now())
    assert kinds(signed_in, "encod") == ["model encoder"]


def test_alerts_have_a_badge_with_those_that_the_reader_may_see(
    signed_in: Client, farm: Run, watch: Watch, version: Version, stranger: User
) -> None:
    watching.bare_alert(watch, version, bad="1.31.0", snoozed_for="1.32.0")
    watching.bare_alert(watch, version, bad="1.32.0", state="resolved")
    assert '<span class="count">1<span class="unseen"> open</span></span>' in signed_in.get("/models/").content.decode()
    assert 'class="count"' not in client_of(stranger).get("/models/").content.decode()
    assert "Alerts 1 open Models" in words_of(signed_in.get("/models/"))


def test_the_page_of_results_finds_documents_too(signed_in: Client, farm: Run) -> None:
    words = assert_is_page(signed_in.get("/search/", {"q": "noise floor"}))
    assert "In the docs" in words
    assert "noise floor" in words[words.index("In the docs") :]
    # letters that every document holds find none
    assert "In the docs" not in assert_is_page(signed_in.get("/search/", {"q": "en"}))
