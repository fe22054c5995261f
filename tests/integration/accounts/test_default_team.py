"""What names no team goes where its person decided, and never where somebody else would have it."""

import base64
import io
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.views import watches
from farm.accounts import memberships, selectors, services
from farm.accounts.models import Membership, Team, User
from farm.accounts.states import ALL_OF_A_PERSON, Role
from farm.alerts.models import Channel, Watch
from farm.base.refusals import Invalid
from farm.fleet.models import EnrolmentCode
from farm.registry.models import PartialUpload, Version
from tests.conftest import ApiOf
from tests.responses import Response

HOOK: Final = {"name": "ours", "kind": "webhook", "target": "https://example.com/hook", "digest": "never"}
WRITTEN: Final = (Version, PartialUpload, Watch, Channel, EnrolmentCode)
Ask = Callable[[Client, str], Response]


@pytest.fixture
def both(team: Team, stranger: User) -> User:
    """An admin of “elsewhere” who also came into “vision”, whose number is lower."""
    Membership.objects.create(team=team, user=stranger, role=Role.ADMIN)
    assert [found.name for found in Team.objects.order_by("pk")] == [team.name, "elsewhere"]
    return stranger


def _file() -> SimpleUploadedFile:
    return SimpleUploadedFile("mine.onnx", b"\x08\x08")


def _named(team: str) -> dict[str, str]:
    return {"team": team} if team else {}


def _post(client: Client, address: str, body: Mapping[str, object]) -> Response:
    return client.post(address, dict(body), content_type="application/json")


def _in_pieces(client: Client, team: str) -> Response:
    said = {"filename": "mine.onnx", **_named(team)}
    metadata = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in said.items())
    headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Metadata": metadata}
    return client.post("/api/v1/uploads/files", headers=headers)


def _raw(client: Client, team: str) -> Response:
    query = f"?file=mine.onnx&team={team}" if team else "?file=mine.onnx"
    return client.put(f"/api/v1/uploads{query}", b"\x08\x08", content_type="application/octet-stream")


def _watch(client: Client, team: str) -> Response:
    return _post(client, "/api/v1/watches", {"name": "mine", "reference": "1.29.0", "label": "prod", **_named(team)})


def _watch_form(client: Client, team: str) -> Response:
    fields: dict[str, Any] = dict(watches.empty_form())
    typed = {**fields, **fields.pop("limits"), "name": "mine", "reference": "1.29.0", "label": "prod", "team": team}
    return client.post("/watches/new/", typed)


BY_TOKEN: Final[dict[str, Ask]] = {
    "upload": lambda client, team: client.post("/api/v1/uploads", {"files": _file(), **_named(team)}),
    "raw upload": _raw,
    "upload in pieces": _in_pieces,
    "watch": _watch,
    "channel": lambda client, team: _post(client, "/api/v1/channels", {**HOOK, **_named(team)}),
    "node": lambda client, team: _post(client, "/api/v1/nodes/invitations", _named(team)),
}
ON_PAGES: Final[dict[str, Ask]] = {
    "upload": lambda client, team: client.post("/models/upload/", {"files": _file(), **_named(team)}),
    "watch": _watch_form,
    "channel": lambda client, team: client.post("/settings/channels/", {**HOOK, **_named(team)}),
    "node": lambda client, team: client.post("/fleet/invite/", _named(team)),
}


def written() -> list[str]:
    """The team of everything that was written."""
    rows = [row for kind in WRITTEN for row in kind._default_manager.all()]
    return [(row.model if isinstance(row, Version) else row).team.name for row in rows]


@pytest.mark.parametrize("what", BY_TOKEN)
def test_a_program_that_names_none_of_several_teams_is_given_their_names(what: str, both: User, api_of: ApiOf) -> None:
    client = api_of(both, *ALL_OF_A_PERSON)
    answer = BY_TOKEN[what](client, "")
    assert (answer.status_code, answer.json()["code"], written()) == (400, "team_not_named", [])
    assert ("vision, elsewhere" in answer.json()["detail"], "--team" in answer.json()["hint"]) == (True, True)
    assert BY_TOKEN[what](client, "elsewhere").status_code in (200, 201, 202)
    assert written() == ["elsewhere"]


@pytest.mark.parametrize("what", ON_PAGES)
def test_a_form_without_a_choice_of_several_teams_writes_nothing(what: str, both: User, client: Client) -> None:
    client.force_login(both)
    assert (ON_PAGES[what](client, "").status_code, written()) == (400, [])
    assert ON_PAGES[what](client, "elsewhere").status_code in (200, 302)
    assert written() == ["elsewhere"]


@pytest.mark.parametrize("address", ["/models/upload/", "/watches/new/", "/settings/channels/", "/fleet/"])
def test_a_form_chooses_none_of_several_teams_by_itself(address: str, both: User, client: Client) -> None:
    client.force_login(both)
    page = client.get(address).content.decode()
    field = page[page.index('<select name="team"') :].partition("</select>")[0]
    assert ("<option>vision</option>" in field, "<option>elsewhere</option>" in field, "selected" in field) == (
        True,
        True,
        False,
    )
    assert field.index('<option value="">') < field.index("<option>vision")


def test_with_one_team_none_needs_a_name(member: User, member_api: Client, client: Client) -> None:
    assert BY_TOKEN["upload in pieces"](member_api, "").status_code == 201
    client.force_login(member)
    assert ON_PAGES["node"](client, "").status_code == 200
    assert written() == ["vision", "vision"]


def test_a_team_that_a_person_only_looks_at_changes_no_default(team: Team, stranger: User) -> None:
    Membership.objects.create(team=team, user=stranger, role=Role.VIEWER)
    assert selectors.team_to_write(stranger).name == "elsewhere"


@pytest.mark.parametrize("act", ["removed", "demoted"])
def test_nobody_s_default_moves_when_others_take_a_team_from_them(team: Team, owner: User, both: User, act: str):
    root = services.create_owner(name="root")
    elsewhere = Team.objects.get(name="elsewhere")
    Membership.objects.create(team=elsewhere, user=root, role=Role.ADMIN)
    if act == "removed":
        memberships.remove_member(team=elsewhere, user=both, by=root)
    else:
        memberships.set_role(team=elsewhere, user=both, role=Role.VIEWER, by=root)
    with pytest.raises(Invalid, match="vision"):
        selectors.team_to_write(both)
    memberships.choose_team(team=team, by=both)
    assert selectors.team_to_write(both) == team


def test_who_leaves_a_team_by_themselves_keeps_the_other(team: Team, owner: User, both: User) -> None:
    elsewhere = Team.objects.get(name="elsewhere")
    Membership.objects.create(team=elsewhere, user=owner, role=Role.ADMIN)
    memberships.remove_member(team=elsewhere, user=both, by=both)
    assert selectors.team_to_write(both) == team


def test_an_administrator_writes_where_they_are_a_member_whatever_teams_there_are(db: None) -> None:
    root = services.create_owner(name="root")
    Team.objects.create(name="another")
    assert selectors.team_to_write(root).name == "home"
    Membership.objects.filter(user=root).delete()
    with pytest.raises(Invalid, match="home, another"):
        selectors.team_to_write(root)
    for number in range(selectors.MAX_NAMES):
        Team.objects.create(name=f"team {number}")
    with pytest.raises(Invalid, match="team 17, …"):
        selectors.team_to_write(root)


def test_a_raw_body_goes_where_its_sender_wrote_when_it_began(stranger: User, team: Team, api_of: ApiOf) -> None:
    """Not where others moved them to while it came."""

    class Moving(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            Membership.objects.filter(user=stranger).delete()
            Membership.objects.get_or_create(team=team, user=stranger, role=Role.ADMIN)
            return super().read(size)

    content = b"\x08\x08"
    sent = api_of(stranger).generic(
        "PUT", "/api/v1/uploads?file=mine.onnx", content, "application/octet-stream", **{"wsgi.input": Moving(content)}
    )
    assert (sent.status_code, written()) == (404, [])
