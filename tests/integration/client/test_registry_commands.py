"""`onnxfarm models` and `onnxfarm search` against a farm: every order of the pages, and what it refuses."""

import pytest

from farm.accounts.models import User
from farm.registry.models import Model, Version
from farm.runs.models import Run
from tests.integration.client.conftest import Command
from tests.integration.dashboard import rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(member: User) -> Version:
    return rows.make_version(member.memberships.get().team, member)


def test_models_are_listed_without_a_word_and_by_a_part_of_a_name(onnxfarm: Command, version: Version) -> None:
    for words in ((), ("enc",), ("list",), ("list", "enc")):
        assert "encoder" in onnxfarm("models", *words).stdout, words
    assert "No models" in onnxfarm("models", "zzz").stdout
    assert '"name": "encoder"' in onnxfarm("models", "--json").stdout


def test_a_model_is_renamed_labelled_and_described(onnxfarm: Command, version: Version) -> None:
    assert onnxfarm("models", "rename", "encoder", "encoder 2").exit_code == 0
    assert onnxfarm("models", "label", version.model_id, "ci", "small").exit_code == 0
    assert onnxfarm("models", "label", "encoder 2", "small", "--remove").exit_code == 0
    assert onnxfarm("models", "describe", "encoder 2", "The small one.").exit_code == 0
    assert onnxfarm("models", "describe", "encoder 2", "FP16", "--version", 1).exit_code == 0
    model = Model.objects.get()
    assert (model.name, model.labels, model.description) == ("encoder 2", ["ci"], "The small one.")
    assert Version.objects.get().note == "FP16"


def test_a_measured_version_and_its_model_are_deleted_and_restored(onnxfarm: Command, version: Version, member: User):
    Run.objects.create(team=version.model.team, version=version, matrix={})
    said = onnxfarm("models", "delete", "encoder", "--yes")
    assert "1 hidden with their runs and results kept" in said.output
    assert "encoder" not in onnxfarm("models").stdout
    assert onnxfarm("models", "restore", "encoder").exit_code == 0
    rows.make_version(version.model.team, member, number=2)
    assert onnxfarm("models", "delete", "encoder", "--version", 1, "--yes").exit_code == 0
    assert onnxfarm("models", "restore", "encoder", "--version", 1).exit_code == 0
    assert [one.removed_at for one in Version.objects.all()] == [None, None]


def test_a_version_that_nobody_measured_is_deleted_for_good_by_its_models_number(onnxfarm: Command, version: Version):
    said = onnxfarm("models", "delete", version.model_id, "--yes")
    assert said.exit_code == 0
    assert "encoder is deleted: 1 version deleted permanently" in " ".join(said.output.split())
    assert not Model.objects.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("delete", "encoder"), "Not a terminal: add --yes to confirm."),
        (("delete", "nothing", "--yes"), "There is no model “nothing” that you can access"),
        (("delete", "encoder", "--version", "7", "--yes"), "encoder has no version 7; its versions: 1."),
        (("restore", "encoder"), "There is no deleted model “encoder” that you can access"),
        (("rename", "encoder", " "), "A model's name has 1 to 100 printable characters."),
        (("rename", "encoder", "decoder"), "There is another model “decoder” in team"),
        (("label", "encoder", "x" * 41), "at most 20 labels of 1 to 40"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    onnxfarm: Command, version: Version, member: User, words: tuple[str, ...], sentence: str
) -> None:
    rows.make_version(version.model.team, member, name="decoder")
    answer = onnxfarm("models", *words)
    assert answer.exit_code == 2
    assert sentence in " ".join(answer.output.split())
    assert Model.objects.get(pk=version.model_id).name == "encoder"


def test_everything_is_found_by_one_command(onnxfarm: Command, version: Version) -> None:
    said = onnxfarm("search", version.artifact.sha256[:8]).stdout
    assert "encoder v1" in said
    assert f"/models/{version.model_id}/?version=1" in said
    assert "No results for “zzz”." in onnxfarm("search", "zzz").stdout
    assert '"kind": "model"' in onnxfarm("search", "encod", "--json").stdout
