"""Models and versions are edited, labelled, deleted and restored on their pages; who may only look, may not."""

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.registry.models import Model, Version
from farm.registry.states import VersionState
from farm.runs.models import Run
from tests.integration.dashboard import rows
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page, table_rows, words_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(version: Version, team: Team, owner: User) -> Run:
    """A run as it is once it is concluded, without its measurements."""
    return Run.objects.create(
        team=team, version=version, requested_by=owner, matrix={}, state="finished", outcome="complete"
    )


def test_a_model_is_renamed_labelled_and_described(signed_in: Client, version: Version) -> None:
    given = {"name": "encoder 2", "labels": "ci, nightly,ci", "description": "The small one."}
    words = assert_is_page(signed_in.post(f"/models/{version.model_id}/edit/", given, follow=True))
    assert "encoder 2 is saved." in words
    model = Model.objects.get()
    assert (model.name, model.labels, model.description) == ("encoder 2", ["ci", "nightly"], "The small one.")
    assert "labels ci, nightly" in words_of(signed_in.get("/settings/audit/"))
    assert "ci, nightly" in table_rows(signed_in.get("/models/"), "models")[0]


@pytest.mark.parametrize(
    ("given", "field"),
    [({"name": ""}, "name"), ({"name": "decoder"}, "name"), ({"name": "x" * 101}, "name"),
     ({"labels": "x" * 41}, "labels"), ({"labels": ",".join(map(str, range(21)))}, "labels"),
     ({"description": "x" * 5001}, "description")],
)  # fmt: skip
def test_what_cannot_be_saved_stays_typed_beside_the_reason(
    signed_in: Client, version: Version, team: Team, owner: User, given: dict[str, str], field: str
) -> None:
    rows.make_version(team, owner, name="decoder")
    typed = {"name": "typed", "labels": "typed", "description": "typed", **given}
    response = signed_in.post(f"/models/{version.model_id}/edit/", typed)
    assert response.status_code in (400, 409)
    text = response.content.decode()
    assert f'aria-describedby="{field}-error"' in text
    assert_is_page(response, response.status_code)
    assert "typed" in text
    assert Model.objects.get(pk=version.model_id).name == "encoder"


def test_the_page_says_what_is_deleted_and_what_stays_before_it_is(
    signed_in: Client, version: Version, measured: Run, team: Team, owner: User
) -> None:
    rows.make_version(team, owner, number=2)
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    assert (
        "1 version without runs will be deleted permanently, with files that nothing else uses (up to 4.32 MB)."
        in words
    )
    assert "1 measured version will be hidden and can be restored; 1 run and their results are kept." in words


def test_a_deleted_model_is_out_of_sight_with_its_runs_kept_and_is_restored(
    signed_in: Client, version: Version, measured: Run, node: Node
) -> None:
    address = f"/models/{version.model_id}/"
    words = assert_is_page(signed_in.post(f"{address}delete/", follow=True))
    assert "encoder is deleted: 1 version hidden, with their runs and results kept." in words
    assert "This model was deleted" in words
    assert "encoder" not in assert_is_page(signed_in.get("/models/"))
    assert f"run {measured.pk}" in words_of(signed_in.get("/runs/"))
    assert "encoder" not in words_of(signed_in.get("/runs/new/"))
    words = assert_is_page(signed_in.post(f"{address}restore/", follow=True))
    assert "encoder is restored." in words
    assert "encoder" in words_of(signed_in.get("/models/"))


def test_a_rejected_upload_is_found_in_the_list_and_deleted(signed_in: Client, team: Team, owner: User) -> None:
    version = rows.make_version(team, owner, state=VersionState.REJECTED)
    assert "✕ rejected" in " ".join(table_rows(signed_in.get("/models/"), "models")[0])
    response = signed_in.post(f"/models/versions/{version.pk}/delete/", follow=True)
    assert response.redirect_chain[-1][0] == "/models/"
    assert "encoder v1 is deleted: 1 version deleted permanently" in assert_is_page(response)
    assert not Model.objects.exists()


def test_versions_with_the_same_files_name_each_other(signed_in: Client, version: Version, team: Team, owner: User):
    twin = rows.make_version(team, owner, name="encoder-old")
    Version.objects.filter(pk=twin.pk).update(artifact=version.artifact)
    words = assert_is_page(signed_in.get(f"/models/{version.model_id}/"))
    assert "Same files as encoder-old v1" in words
    second = rows.make_version(team, owner, number=2)
    Version.objects.filter(pk=second.pk).update(artifact=version.artifact)
    listed = table_rows(signed_in.get(f"/models/{version.model_id}/"), "versions")
    assert [row[-1] for row in listed] == ["version 1", "version 2"]


def test_a_version_is_noted_deleted_and_restored(
    signed_in: Client, version: Version, measured: Run, team: Team, owner: User
) -> None:
    rows.make_version(team, owner, number=2)
    words = assert_is_page(signed_in.post(f"/models/versions/{version.pk}/note/", {"note": "FP16"}, follow=True))
    assert "The note of encoder v1 is saved." in words
    assert "A note has at most 500" in words_of(
        signed_in.post(f"/models/versions/{version.pk}/note/", {"note": "x" * 501}, follow=True)
    )
    words = assert_is_page(signed_in.post(f"/models/versions/{version.pk}/delete/", follow=True))
    assert "Version 1 was deleted" in words
    assert [row[0] for row in table_rows(signed_in.get(f"/models/{version.model_id}/"), "versions")] == ["version 2"]
    words = assert_is_page(signed_in.post(f"/models/versions/{version.pk}/restore/", follow=True))
    assert "encoder v1 is restored." in words


def test_chosen_models_are_labelled_or_deleted_together(
    signed_in: Client, version: Version, measured: Run, team: Team, owner: User
) -> None:
    other = rows.make_version(team, owner, name="decoder")
    chosen = [version.model_id, other.model_id]
    words = assert_is_page(signed_in.get("/models/chosen/", {"models": chosen}))
    assert "2 models chosen" in words
    assert "hidden and can be restored" in words
    words = words_of(
        signed_in.post("/models/chosen/", {"models": chosen, "what": "label", "labels": "ci, small"}, follow=True)
    )
    assert "decoder: ci, small." in words
    assert all(model.labels == ["ci", "small"] for model in Model.objects.all())
    words = words_of(signed_in.post("/models/chosen/", {"models": chosen, "what": "delete"}, follow=True))
    assert "decoder is deleted: 1 version deleted permanently" in words
    assert list(Model.objects.not_removed()) == []
    assert "Select models first" in assert_is_page(signed_in.get("/models/chosen/?models=x"))


@pytest.mark.parametrize("what", ["edit", "delete", "restore"])
def test_who_may_only_look_may_not_change_a_model(
    viewer: User, stranger: User, version: Version, measured: Run, what: str
) -> None:
    given = {"name": "mine", "labels": "", "description": ""}
    response = client_of(viewer).post(f"/models/{version.model_id}/{what}/", given, follow=True)
    assert "You can view the models of team" in words_of(response)
    assert client_of(stranger).post(f"/models/{version.model_id}/{what}/", given).status_code == 404
    model = Model.objects.get()
    assert (model.name, model.removed_at) == ("encoder", None)
    assert "/delete/" not in client_of(viewer).get(f"/models/{version.model_id}/").content.decode()


def test_retiring_a_node_and_closing_a_token_are_asked_twice(signed_in: Client, node: Node, owner: User) -> None:
    text = signed_in.get(f"/fleet/{node.pk}/").content.decode()
    assert "This cannot be undone: to come back, the machine must join again" in text
    assert '<summary class="button">Retire</summary>' in text
    signed_in.post("/settings/tokens/", {"name": "ci", "scopes": ["read"]})
    text = signed_in.get("/settings/tokens/").content.decode()
    assert "Programs that use this token stop working immediately." in text
    assert text.count('<summary class="button copy">revoke</summary>') == 1


def test_too_many_files_of_labelled_data_are_refused_on_the_version_s_page(signed_in: Client, version: Version) -> None:
    files = [SimpleUploadedFile(f"{number}.npz", b"x") for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FILES + 1)]
    response = signed_in.post(f"/models/versions/{version.pk}/evaluation/", {"evaluation": files}, follow=True)
    assert "The form could not be read" in assert_is_page(response)
