"""Uploads: a form of files, or a raw body. Models are not parsed here; a `prepare` worker inspects them later.

`make_origin` raises Invalid for a bad branch or commit, and for a gate token without a branch.
"""

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from farm.accounts.selectors import team_to_write
from farm.api.auth import GATED, find_gate_token, person
from farm.api.models import shape_version
from farm.base.refusals import Invalid, NotAllowed
from farm.contract.api.registry import VersionOut
from farm.registry import selectors, services
from farm.registry.models import Version
from farm.registry.states import FileRole, VersionState
from farm.registry.storage import Draft
from farm.registry.upload_handler import StoredUpload, receive_body

router = Router(tags=["registry"])
# fields that give their file a role; the files of other fields have the role that their name tells
ROLE_FIELDS = {role.value: role for role in FileRole if role not in (FileRole.MODEL, FileRole.DATA)}
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        **{name: {"type": "string", "format": "binary"} for name in ROLE_FIELDS},
                        "model": {"type": "string", "description": "name of the line; default: the file's name"},
                        "note": {"type": "string", "maxLength": 500},
                        "team": {"type": "string", "description": "may be left out where you write in one team alone"},
                        "branch": {"type": "string", "maxLength": 255, "description": "whose gate uploads it"},
                        "commit": {"type": "string", "maxLength": 64, "description": "the commit that has it"},
                        "recipe": {"type": "string", "description": "how evaluation data are judged; default: top1"},
                    },
                }
            }
        },
    }
}
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class RawUpload(Schema):
    """Where a raw body goes. `file`: its name, ending in .onnx or .zip."""

    file: str = Field(min_length=1, max_length=200, description="its name, ending in .onnx or .zip")
    model: str = Field(
        default="", max_length=100, description="the model that this is a version of; default: the file's name"
    )
    note: str = Field(default="", max_length=500, description="a note on this version")
    team: str = Field(
        default="", max_length=100, description="the team that it goes to; may be left out where you write in one alone"
    )


@router.post("/uploads", response={200: VersionOut, 202: VersionOut}, openapi_extra=FORM, auth=GATED)
def upload(request: HttpRequest) -> Status[VersionOut]:
    """Upload an .onnx with its external data and reference data, or a .zip of those.

    202: a new version, to be inspected; read it until `state` is ready or rejected. 200: the same bundle is already a
    version of this model. A token that may only gate uploads into its own team alone.
    """
    if request.content_type != "multipart/form-data":
        raise Invalid(
            f"The upload came as {request.content_type or 'no content type'}.",
            code="bad_form",
            hint="Send multipart/form-data, or a raw body with PUT.",
        )
    drafts, roles = _list_drafts(request)
    form = request.POST
    version = services.receive_upload(
        user=person(request),
        files=drafts,
        roles=roles,
        model=form.get("model", ""),
        note=form.get("note", ""),
        team=choose_team(request, form.get("team", "")),
        recipe=form.get("recipe", ""),
        origin=make_origin(request, branch=form.get("branch", ""), commit=form.get("commit", "")),
    )
    return _answer(request, version)


@router.put("/uploads", response={200: VersionOut, 202: VersionOut}, openapi_extra=BODY)
def upload_raw(request: HttpRequest, to: Query[RawUpload]) -> Status[VersionOut]:
    """Upload one .onnx or .zip as the raw body; same answers as the form."""
    # refuse a person who may not upload there before the body is read
    team = team_to_write(person(request), name=to.team)
    draft = receive_body(request, name=to.file)
    # keep the team of that check, even if the person's default team changes while the body arrives
    version = services.receive_upload(user=person(request), files=[draft], model=to.model, note=to.note, team=team.name)
    return _answer(request, version)


def make_origin(request: HttpRequest, *, branch: str, commit: str) -> services.Origin:
    return services.Origin(branch, commit, is_gate=find_gate_token(request) is not None)


def choose_team(request: HttpRequest, named: str) -> str:
    """Return the name of the team to upload to: `named`, which may be empty, or the team of a gate token.

    A gate token without a team counts as any other. Raises NotAllowed where a request with a gate token names another
    team.
    """
    gate = find_gate_token(request)
    if gate is None or gate.team is None:
        return named
    if named not in ("", gate.team.name):
        raise NotAllowed(f"This token gates models of team “{gate.team.name}” alone, not of “{named[:100]}”.")
    return gate.team.name


def _list_drafts(request: HttpRequest) -> tuple[list[Draft], dict[str, FileRole]]:
    """Return the uploaded files, and by file name the roles that the form's fields gave them."""
    drafts: list[Draft] = []
    roles: dict[str, FileRole] = {}
    for field, files in request.FILES.lists():
        for file in files:
            if not isinstance(file, StoredUpload):
                raise TypeError(f"{file!r} did not come through the store's upload handler")
            drafts.append(file.draft)
            if field in ROLE_FIELDS:
                roles[file.draft.name] = ROLE_FIELDS[field]
    return drafts, roles


def _answer(request: HttpRequest, version: Version) -> Status[VersionOut]:
    # use the state of the service's row: a quick worker may have inspected the version since
    status = 202 if version.state == VersionState.PENDING else 200
    return Status(status, shape_version(selectors.version(person(request), version.pk)))
