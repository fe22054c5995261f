"""Descriptions and labels of models."""

from collections.abc import Callable

import pytest
from django.test import Client

from farm.accounts.models import Team, User
from farm.registry.models import Model

ApiOf = Callable[..., Client]


@pytest.fixture
def address(team: Team) -> str:
    return f"/api/v1/models/{Model.objects.create(team=team, name='encoder').pk}"


def patch(client: Client, address: str, **changes: object) -> object:
    return client.patch(address, changes, content_type="application/json")


def test_a_member_describes_a_model_and_what_is_left_out_stays(api_of: ApiOf, member: User, address: str) -> None:
    client = api_of(member)
    patch(client, address, description=" The encoder. ", labels=["prod", "prod", " nlp "])
    patch(client, address, labels=["nlp"])
    seen = client.get(address).json()
    assert (seen["description"], seen["labels"]) == ("The encoder.", ["nlp"])


@pytest.mark.parametrize(
    "changes", [{"labels": [""]}, {"labels": ["x" * 41]}, {"labels": [str(n) for n in range(21)]}, {"labels": ["a\n"]}]
)
def test_bad_labels_are_refused(api_of: ApiOf, member: User, address: str, changes: dict[str, list[str]]) -> None:
    answer = patch(api_of(member), address, **changes)
    if changes["labels"] == ["a\n"]:
        assert answer.json()["labels"] == ["a"]  # type: ignore[attr-defined]
    else:
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_label")  # type: ignore[attr-defined]


def test_a_viewer_looks_and_a_stranger_does_not_even_that(
    api_of: ApiOf, viewer: User, stranger: User, address: str
) -> None:
    assert patch(api_of(viewer), address, labels=["x"]).status_code == 403  # type: ignore[attr-defined]
    assert patch(api_of(stranger), address, labels=["x"]).status_code == 404  # type: ignore[attr-defined]
    assert patch(api_of(viewer), address, description="\x00" * 9).status_code in (400, 403)  # type: ignore[attr-defined]
