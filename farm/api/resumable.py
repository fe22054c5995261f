"""Uploads that survive a cut connection: tus 1.0 (creation, checksum, expiration, termination) below `uploads/files`.

Each file of a model is an upload of its own; `uploads/complete` then makes a version of them, as `POST uploads` does.
"""

import base64
import binascii
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import http_date
from ninja import Router, Schema, Status
from pydantic import Field

from farm.api.auth import GATED, check_gate_token, person
from farm.api.description import describe_empty_answer
from farm.api.models import shape_version
from farm.api.uploads import choose_team, make_origin
from farm.base.refusals import Invalid, Refusal
from farm.contract.api.registry import VersionOut
from farm.registry import selectors, services
from farm.registry.models import PartialUpload
from farm.registry.services import resumption
from farm.registry.states import FileRole, VersionState
from farm.registry.upload_handler import CHUNK_BYTES

router = Router(tags=["registry"])
VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,checksum,expiration,termination"
PIECE_TYPE: Final = "application/offset+octet-stream"
MAX_DIGITS: Final = 15
PIECE = {"requestBody": {"content": {PIECE_TYPE: {"schema": {"type": "string", "format": "binary"}}}}}


class OtherVersion(Refusal):
    """The refusal of a request that does not name this version of tus in its header `Tus-Resumable`."""

    status = 412
    default_code = "tus_version"
    headers = {"Tus-Version": VERSION}


class OtherType(Refusal):
    """The refusal of a piece with another content type than PIECE_TYPE."""

    status = 415
    default_code = "content_type"


class Whole(Schema):
    """A whole upload. `role`: what the file is, where its name does not say so."""

    upload: str = Field(min_length=1, max_length=64, description="last part of the upload's address")
    role: FileRole | None = Field(default=None, description="what the file is, where its name does not say so")


class Completion(Schema):
    """The files of one model; the rest as in the upload form."""

    files: list[Whole] = Field(min_length=1, max_length=64, description="uploads that are whole, which make one bundle")
    model: str = Field(
        default="", max_length=100, description="the model that this is a version of; default: the file's name"
    )
    note: str = Field(default="", max_length=500, description="a note on this version")
    branch: str = Field(default="", max_length=255, description="the branch whose gate uploads it")
    commit: str = Field(default="", max_length=64, description="the commit that has it")
    recipe: str = Field(default="", max_length=300, description="how outputs are judged on labelled data")


@router.api_operation(
    ["OPTIONS"],
    "/uploads/files",
    auth=None,
    operation_id="uploads_offered",
    openapi_extra=describe_empty_answer("versions and extensions of tus, in headers", status=204),
)
def offered(request: HttpRequest) -> HttpResponse:
    """What this farm supports of tus, in headers."""
    return _answer(
        204,
        {
            "Tus-Version": VERSION,
            "Tus-Extension": EXTENSIONS,
            "Tus-Max-Size": str(settings.MAX_UPLOAD_BYTES),
            "Tus-Checksum-Algorithm": ",".join(resumption.CHECKSUMS),
        },
    )


@router.post(
    "/uploads/files",
    operation_id="begin_upload",
    openapi_extra=describe_empty_answer("the upload's address, in Location", status=201),
    auth=GATED,
)
def begin(request: HttpRequest) -> HttpResponse:
    """Begin the upload of one file: `Upload-Length`, `Upload-Metadata` with filename, and team and sha256 if wanted.

    A token that may only gate uploads into its own team alone, here and below.
    """
    _check_tus_version(request)
    metadata = _parse_metadata(request.headers.get("Upload-Metadata", ""))
    upload = services.begin_upload(
        user=person(request),
        name=metadata.get("filename", ""),
        length=_parse_bytes(request, "Upload-Length"),
        team=choose_team(request, metadata.get("team", "")),
        sha256=metadata.get("sha256", ""),
    )
    return _answer(201, {"Location": f"{request.path.rstrip('/')}/{upload.key}"}, upload)


@router.api_operation(
    ["HEAD"],
    "/uploads/files/{key}",
    operation_id="upload_offset",
    auth=GATED,
    openapi_extra=describe_empty_answer("Upload-Offset and Upload-Length, in headers"),
)
def offset(request: HttpRequest, key: str) -> HttpResponse:
    """How many bytes of an upload have arrived: `Upload-Offset`. A token that may only gate asks for its own team."""
    _check_tus_version(request)
    upload = _get_upload(request, key)
    resumption.check_not_expired(upload)
    return _answer(200, {"Upload-Length": str(upload.bytes), "Cache-Control": "no-store"}, upload)


@router.patch(
    "/uploads/files/{key}",
    operation_id="append_to_upload",
    auth=GATED,
    openapi_extra=PIECE | describe_empty_answer("Upload-Offset, in headers", status=204),
)
def append(request: HttpRequest, key: str) -> HttpResponse:
    """Add a piece at `Upload-Offset`, with `Upload-Checksum` if wanted. A token that may only gate adds for its own
    team."""
    _check_tus_version(request)
    if request.content_type != PIECE_TYPE:
        raise OtherType(f"A piece comes as {PIECE_TYPE}, not as {(request.content_type or 'nothing')[:60]}.")
    upload = services.append_piece(
        upload=_get_upload(request, key),
        offset=_parse_bytes(request, "Upload-Offset"),
        chunks=iter(lambda: request.read(CHUNK_BYTES), b""),
        declared=_parse_bytes(request, "Content-Length"),
        checksum=resumption.parse_checksum(request.headers.get("Upload-Checksum", "")),
    )
    return _answer(204, {}, upload)


@router.delete(
    "/uploads/files/{key}", operation_id="abandon_upload", openapi_extra=describe_empty_answer("it is gone", status=204)
)
def abandon(request: HttpRequest, key: str) -> HttpResponse:
    """Cancel an upload and delete what has arrived of it."""
    _check_tus_version(request)
    services.cancel_upload(upload=selectors.partial_upload(person(request), key))
    return _answer(204, {})


@router.post(
    "/uploads/complete", response={200: VersionOut, 202: VersionOut}, operation_id="complete_uploads", auth=GATED
)
def complete(request: HttpRequest, payload: Completion) -> Status[VersionOut]:
    """Make a version of whole uploads; same answers as the form. Asking again answers the same version.

    A token that may only gate makes versions of its own team alone.
    """
    user = person(request)
    uploads = [_get_upload(request, part.upload) for part in payload.files]
    roles = {upload.name: part.role for upload, part in zip(uploads, payload.files, strict=True) if part.role}
    version = services.complete_upload(
        user=user,
        uploads=uploads,
        roles=roles,
        model=payload.model,
        note=payload.note,
        recipe=payload.recipe,
        origin=make_origin(request, branch=payload.branch, commit=payload.commit),
    )
    visible = selectors.version(user, version.pk)
    return Status(202 if visible.state == VersionState.PENDING else 200, shape_version(visible))


def _get_upload(request: HttpRequest, key: str) -> PartialUpload:
    """Return an upload that the person has begun.

    Raises Missing where there is none, or where a gate token asks for an upload to another team.
    """
    upload = selectors.partial_upload(person(request), key)
    check_gate_token(request, upload.team)
    return upload


def _answer(status: int, headers: dict[str, str], upload: PartialUpload | None = None) -> HttpResponse:
    """Make an answer of tus, which has headers and no body."""
    response = HttpResponse(status=status, headers={"Tus-Resumable": VERSION, **headers})
    if upload is not None:
        response.headers["Upload-Offset"] = str(upload.offset)
        response.headers["Upload-Expires"] = http_date(upload.expires_at.timestamp())
    return response


def _check_tus_version(request: HttpRequest) -> None:
    if request.headers.get("Tus-Resumable") != VERSION:
        raise OtherVersion(f"This address speaks tus {VERSION}: send the header Tus-Resumable: {VERSION}.")


def _parse_bytes(request: HttpRequest, header: str) -> int:
    """Parse a header that is a number of bytes. Raises Invalid for a missing or malformed one."""
    text = request.headers.get(header, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise Invalid(f"{header} is a number of bytes, not “{text[:30]}”.", code="bad_header")
    return int(text)


def _parse_metadata(header: str) -> dict[str, str]:
    """Parse `Upload-Metadata`: names with texts in base64, separated by commas; {} if it is empty. Raises Invalid."""
    pairs = [pair.strip().partition(" ") for pair in header.split(",") if pair.strip()]
    try:
        return {name: base64.b64decode(encoded, validate=True).decode() for name, _, encoded in pairs}
    except (binascii.Error, ValueError):
        raise Invalid("Upload-Metadata holds pairs of a name and a text in base64.", code="bad_header") from None
