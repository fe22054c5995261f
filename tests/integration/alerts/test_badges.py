"""Badges: what they say of a model, and who may ask."""

import xml.etree.ElementTree as ElementTree

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.alerts.models import Alert, Watch
from farm.alerts.states import AlertState, RoundState
from farm.fleet.models import Node
from farm.registry.models import Version
from tests.conftest import ApiOf
from tests.integration.alerts.driving import Lab, offer, slower_from
from tests.integration.dashboard.watching import bare_round

pytestmark = pytest.mark.django_db


def said(api_of: ApiOf, version: Version, user: User) -> tuple[str, str]:
    found = api_of(user).get(f"/api/v1/models/{version.model.pk}/badge").json()
    return found["text"], found["tone"]


def test_a_badge_follows_the_model_from_unwatched_to_slower_to_settled(
    api_of: ApiOf, version: Version, watch: Watch, node: Node, viewer: User
) -> None:
    assert said(api_of, version, viewer) == ("no result yet", "unknown")
    Lab(node).live()
    offer("1.29.0", "1.30.0")
    Lab(node).live()
    assert said(api_of, version, viewer) == ("1.30.0 as before", "good")
    offer("1.29.0", "1.30.0", "1.31.0")
    Lab(node, p50_ms=slower_from("1.31.0")).live()
    assert said(api_of, version, viewer) == ("slower since 1.31.0", "bad")
    Alert.objects.update(state=AlertState.INVALID)
    assert said(api_of, version, viewer) == ("1.31.0 reviewed", "unsure")


def test_a_change_that_a_fresh_block_has_yet_to_confirm_is_a_result(
    api_of: ApiOf, version: Version, watch: Watch, viewer: User
) -> None:
    """The badge said "no result yet" while the watch had measured 26 % slower."""
    bare_round(watch, version)
    bare_round(watch, version, new="1.31.0", state=RoundState.CONFIRMING, outcome="", judged_at=None)
    assert said(api_of, version, viewer) == ("1.31.0 to be confirmed", "unsure")


def test_the_image_is_public_by_its_key_alone(api_of: ApiOf, version: Version, viewer: User) -> None:
    found = api_of(viewer).get(f"/api/v1/models/{version.model.pk}/badge").json()
    path = found["url"][found["url"].index("/api/") :]
    image = Client().get(path)
    assert (image.status_code, image.headers["Content-Type"]) == (200, "image/svg+xml; charset=utf-8")
    assert "sandbox" in image.headers["Content-Security-Policy"]
    assert "max-age=300" in image.headers["Cache-Control"]
    assert ElementTree.fromstring(image.content).get("aria-label") == "onnxfarm: not watched yet"
    assert found["markdown"].startswith("[![onnxfarm: not watched yet](")
    for wrong in (path.replace(".svg", "0.svg"), f"/api/v1/badges/999/{'0' * 32}.svg"):
        assert Client().get(wrong).status_code == 404


def test_strangers_are_told_of_no_badge(api_of: ApiOf, version: Version, stranger: User) -> None:
    assert api_of(stranger).get(f"/api/v1/models/{version.model.pk}/badge").status_code == 404
    assert Client().get(f"/api/v1/models/{version.model.pk}/badge").status_code == 401
