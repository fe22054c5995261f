"""Descriptions and labels of models."""

from threading import Thread

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict
from farm.registry import services
from farm.registry.models import Model
from farm.registry.services import descriptions
from tests.conftest import ApiOf


@pytest.fixture
def address(team: Team) -> str:
    return f"/api/v1/models/{Model.objects.create(team=team, name='encoder').pk}"


def patch(client: Client, address: str, **changes: object) -> object:
    return client.patch(address, changes, content_type="application/json")


def test_a_member_describes_a_model_and_what_is_left_out_stays(member_api: Client, address: str) -> None:
    patch(member_api, address, description=" The encoder. ", labels=["prod", "prod", " nlp "])
    patch(member_api, address, labels=["nlp"])
    seen = member_api.get(address).json()
    assert (seen["description"], seen["labels"]) == ("The encoder.", ["nlp"])


@pytest.mark.parametrize(
    "changes", [{"labels": [""]}, {"labels": ["x" * 41]}, {"labels": [str(n) for n in range(21)]}, {"labels": ["a\n"]}]
)
def test_bad_labels_are_refused(member_api: Client, address: str, changes: dict[str, list[str]]) -> None:
    answer = patch(member_api, address, **changes)
    if changes["labels"] == ["a\n"]:
        assert answer.json()["labels"] == ["a"]  # type: ignore[attr-defined]
    else:
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_label")  # type: ignore[attr-defined]


def test_a_viewer_looks_and_a_stranger_does_not_even_that(api_of: ApiOf, viewer: User, stranger: User, address: str):
    assert patch(api_of(viewer), address, labels=["x"]).status_code == 403  # type: ignore[attr-defined]
    assert patch(api_of(stranger), address, labels=["x"]).status_code == 404  # type: ignore[attr-defined]
    assert patch(api_of(viewer), address, description="\x00" * 9).status_code in (400, 403)  # type: ignore[attr-defined]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("order", ["rename", "restore"])
def test_two_models_that_take_one_name_at_the_same_time_are_told_apart_in_words(
    team: Team, member: User, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (Model.objects.create(team=team, name=name) for name in ("speech", "old speech"))
    if order == "restore":
        Model.objects.filter(pk=mine.pk).update(removed_at=timezone.now())
        mine.refresh_from_db()
    known, told = descriptions.is_name_taken, []

    def rename_the_other() -> None:
        try:
            services.edit_model(model=other, by=member, name="encoder" if order == "rename" else "speech")
        except Exception as problem:
            told.append(problem)
        finally:
            connection.close()

    rival = Thread(target=rename_the_other)

    def look_while_the_rival_writes(model: Model, name: str) -> bool:
        is_name_taken = known(model, name)
        if model.pk == mine.pk:
            rival.start()
            # a rival that does not wait for the lock is done by then
            rival.join(0.5)
        return is_name_taken

    monkeypatch.setattr(descriptions, "is_name_taken", look_while_the_rival_writes)
    if order == "rename":
        services.edit_model(model=mine, by=member, name="encoder")
    else:
        services.restore_model(model=mine, by=member)
    rival.join()
    assert [type(problem) for problem in told] == [Conflict]
    assert "There is another model" in str(told[0])
    other.refresh_from_db()
    assert other.name == "old speech"
