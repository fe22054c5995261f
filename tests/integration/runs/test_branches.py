"""What gates upload for branches: how long it stays, what goes with it, who may keep it, and where it is shown."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict, Missing
from farm.registry import services
from farm.registry.models import Blob, Preparation, Version
from farm.registry.selectors import find_stored_file
from farm.registry.services import free_quota_bytes
from farm.runs.models import RetentionRule, Run
from farm.runs.selectors.documents import document_json
from farm.runs.selectors.retention import find_next_act, find_retention_rule, list_due_removals
from farm.runs.services import measure_more_rounds, retain
from tests.integration.dashboard import rows
from tests.integration.registry.uploading import part_of

pytestmark = pytest.mark.django_db
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MATRIX = {"budget": "quick", "matrix": {"runtime": ["1.29.0", "1.31.1"]}}


@pytest.fixture
def version(member_api: Client, models: Path) -> Version:
    """Of a branch, forty days old, beside one of the model's own line."""
    sent(member_api, models / "cnn_dyn.onnx", model="net")
    return aged(sent(member_api, models / "relu_op13_ir7.onnx", model="net", branch="faster", commit=COMMIT))


def sent(client: Client, path: Path, **said: str) -> Version:
    answer = client.post("/api/v1/uploads", {"files": [part_of(path)], **said})
    services.inspect_version(answer.json()["id"])
    return Version.objects.get(pk=answer.json()["id"])


def aged(version: Version, days: int = 40) -> Version:
    Version.objects.filter(pk=version.pk).update(sent_at=timezone.now() - timedelta(days=days))
    version.refresh_from_db()
    return version


def measured(version: Version, team: Team, owner: User) -> Run:
    run = rows.finished_run(version, rows.make_node(team, owner), owner, matrix=MATRIX, kind=rows.MadeUpNode)
    # in which the model's own file stands for its inputs
    Preparation.objects.update(inputs=None, reference=None)
    return run


def is_stored(version: Version) -> bool:
    return find_stored_file(version.artifact.files.get().blob.sha256).is_file()


def test_what_a_branch_uploaded_goes_after_thirty_days_without_any_rule(
    version: Version, team: Team, owner: User
) -> None:
    [going] = list_due_removals(find_retention_rule(owner, team.pk))
    assert (going.kind, going.days, going.count) == ("versions of branches", 30, 1)
    assert going.bytes == version.artifact.bytes
    assert retain() == 1
    assert list(Version.objects.values_list("branch", flat=True)) == [""]
    assert not RetentionRule.objects.exists()
    assert find_next_act(find_retention_rule(owner, team.pk)) is None
    assert retain() == 0


@pytest.mark.parametrize(
    "change", [{"is_kept": True}, {"sent_at": timezone.now() - timedelta(days=29)}, {"branch": ""}]
)
def test_what_is_kept_was_sent_lately_or_is_of_the_models_own_line_stays(
    version: Version, change: dict[str, object]
) -> None:
    Version.objects.filter(pk=version.pk).update(**change)
    assert retain() == 0
    assert Version.objects.count() == 2


def test_what_is_measured_now_stays(version: Version, team: Team, owner: User) -> None:
    rows.make_node(team, owner)
    rows.begin_run(version, owner, matrix=MATRIX)
    assert retain() == 0
    assert is_stored(version)


@pytest.mark.django_db(transaction=True)
def test_of_a_measured_one_the_files_go_and_the_run_stays_as_it_was(
    version: Version, team: Team, owner: User, member_api: Client, models: Path
) -> None:
    run = measured(version, team, owner)
    before, room = document_json(run), free_quota_bytes(team)
    assert retain() == 1
    version.refresh_from_db()
    blob = Blob.objects.get(uses__artifact=version.artifact)
    assert (version.removed_at is None, blob.swept_at is None) == (False, False)
    with pytest.raises(Missing):
        is_stored(version)
    assert free_quota_bytes(team) == room + blob.bytes
    assert document_json(run) == before
    for order in (partial(measure_more_rounds, run=run, rounds=2), partial(services.restore_version, version=version)):
        with pytest.raises(Conflict) as refused:
            order(by=owner)
        assert refused.value.code == "swept"
    again = sent(member_api, models / "relu_op13_ir7.onnx", model="net", branch="faster")
    assert (again.pk, again.removed_at, is_stored(again), free_quota_bytes(team)) == (version.pk, None, True, room)
    assert measure_more_rounds(run=run, by=owner, rounds=2, blocks=[1])


@pytest.mark.django_db(transaction=True)
def test_files_that_another_version_has_stay(
    version: Version, team: Team, owner: User, member_api: Client, models: Path
) -> None:
    measured(version, team, owner)
    merged = sent(member_api, models / "relu_op13_ir7.onnx", model="net")
    assert retain() == 1
    assert is_stored(merged)


def test_a_team_says_how_long_branches_stay(version: Version, team: Team, owner: User, client: Client) -> None:
    client.force_login(owner)
    address = f"/settings/teams/{team.pk}/retention/"
    assert 'name="branches_days"' in client.get(address).content.decode()
    client.post(address, {"branches_days": ""})
    assert RetentionRule.objects.get().branches_days is None
    assert retain() == 0
    client.post(address, {"branches_days": "7"})
    assert RetentionRule.objects.get().acts_from > timezone.now()
    RetentionRule.objects.update(acts_from=timezone.now(), acted_at=None)
    assert retain() == 1


def test_a_member_keeps_a_version_on_its_page_and_over_the_api(
    version: Version, member: User, member_api: Client, client: Client
) -> None:
    client.force_login(member)
    address = f"/models/versions/{version.pk}/keep/"
    for kept, is_kept in (("yes", True), ("no", False)):
        client.post(address, {"kept": kept})
        version.refresh_from_db()
        assert version.is_kept is is_kept
    changed = member_api.patch(
        f"/api/v1/versions/{version.pk}", {"is_kept": True}, content_type="application/json"
    ).json()
    assert (changed["is_kept"], changed["note"]) == (True, version.note)
    own = Version.objects.get(branch="")
    refused = member_api.patch(f"/api/v1/versions/{own.pk}", {"is_kept": True}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_branch")


def test_a_models_page_shows_its_own_newest_and_says_which_commit_and_branch_each_version_is(
    version: Version, member: User, client: Client
) -> None:
    client.force_login(member)
    hostile = "<img src=x onerror=alert(1)>`](http://x)"
    Version.objects.filter(pk=version.pk).update(branch=hostile)
    page = client.get(f"/models/{version.model_id}/").content.decode()
    assert "<h2>Version 1</h2>" in page
    assert COMMIT[:12] in page
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    chosen = client.get(f"/models/{version.model_id}/?version=2").content.decode()
    assert f'action="/models/versions/{version.pk}/keep/"' in chosen
    assert "<img src=x" not in chosen


def test_a_hundred_versions_of_branches_hide_none_of_the_models_own(
    version: Version, member: User, member_api: Client, client: Client
) -> None:
    busy = {"model": version.model, "artifact": version.artifact, "branch": "busy", "state": version.state}
    Version.objects.bulk_create(Version(number=number, **busy) for number in range(3, 110))
    client.force_login(member)
    assert "<h2>Version 1</h2>" in client.get(f"/models/{version.model_id}/").content.decode()
    numbers = [each["number"] for each in member_api.get(f"/api/v1/models/{version.model_id}").json()["versions"]]
    assert (len(numbers), numbers[:2], numbers[-1]) == (100, [109, 108], 1)
