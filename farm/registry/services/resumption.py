"""Resumable uploads, as in tus 1.0 (tus.io/protocols): begin one, append pieces, complete them into a version.

An upload that has expired (`check_not_expired`) refuses everything with Gone. `cancel_upload` removes its row and its
bytes.
"""

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import team_to_write
from farm.base.refusals import Conflict, Gone, Invalid, Missing, Refusal, TooLarge, Unprocessable
from farm.registry import partial_files
from farm.registry.models import PartialUpload, Version
from farm.registry.services.origins import OWN_LINE, Origin
from farm.registry.services.uploads import check_free_quota, receive_upload
from farm.registry.states import FileRole
from farm.registry.storage import Draft, check_free_space
from farm.registry.upload_handler import check_upload_size

# an upload is removed after this time without a new piece
PARTIAL_LIFE: Final = timedelta(hours=24)
# unfinished uploads of a person
MAX_OPEN: Final = 128
NAME_LENGTH: Final = 200
# algorithms of Upload-Checksum
CHECKSUMS: Final = ("sha1", "sha256")


class ChecksumMismatch(Refusal):
    """The refusal of bytes that do not have the checksum that the sender named, with the status that tus has for it."""

    status = 460
    default_code = "checksum"


@dataclass(frozen=True, slots=True)
class Checksum:
    """The checksum that the sender names for a piece: an algorithm of CHECKSUMS and the digest's bytes."""

    algorithm: str
    digest: bytes


def parse_checksum(header: str) -> Checksum | None:
    """Parse the header Upload-Checksum, `sha256 <base64>`; None where it is empty. Raises Invalid for another text."""
    if not header:
        return None
    algorithm, _, encoded = header.partition(" ")
    if algorithm not in CHECKSUMS:
        raise Invalid(
            f"The checksum “{algorithm[:20]}” is not known here; use {' or '.join(CHECKSUMS)}.", code="bad_checksum"
        )
    try:
        digest = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != hashlib.new(algorithm).digest_size:
        raise Invalid(f"Upload-Checksum does not hold a {algorithm} in base64.", code="bad_checksum")
    return Checksum(algorithm, digest)


def begin_upload(*, user: User, name: str, length: int, team: str = "", sha256: str = "") -> PartialUpload:
    """Begin the upload of a file of `length` bytes: make its row and its empty file.

    `team` is a team's name, empty for the user's default one. `sha256` is that of the whole file, empty where it is not
    known. Unfinished uploads count against the quota. Raises Invalid for a bad name or sha256, TooLarge over the limit
    of an upload, over the quota or with MAX_OPEN unfinished uploads, NoSpace where the disk has no room, and what
    `team_to_write` raises.
    """
    owner = team_to_write(user, name=team)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise Invalid(f"A file's name has 1 to {NAME_LENGTH} printable characters.", code="bad_name")
    if sha256 and not (len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")):
        raise Invalid("A sha256 has 64 digits from 0 to f.", code="bad_checksum")
    check_upload_size(length)
    with transaction.atomic():
        locked = Team.objects.select_for_update().get(pk=owner.pk)
        _check_room(locked, user, length)
        upload = PartialUpload.objects.create(
            key=secrets.token_urlsafe(32),
            user=user,
            team=locked,
            name=name,
            bytes=length,
            sha256=sha256,
            expires_at=timezone.now() + PARTIAL_LIFE,
        )
        partial_files.create_partial(upload.key)
    return upload


def append_piece(
    *, upload: PartialUpload, offset: int, chunks: Iterable[bytes], declared: int, checksum: Checksum | None = None
) -> PartialUpload:
    """Add a piece at `offset` to an upload; `declared` is its length in bytes as the request says.

    Bytes beyond `declared` are ignored. The bytes of a piece that ends early are kept, unless it has a checksum. The
    upload then expires PARTIAL_LIFE from now. Raises Gone for an expired upload, Conflict for another offset than the
    upload's or where another request took over, TooLarge for a piece beyond the end of the file, Missing where the
    upload's files are gone, ChecksumMismatch, and NoSpace.
    """
    check_not_expired(upload)
    if offset != upload.offset:
        raise Conflict(
            f"The piece starts at {offset:,} and the upload is at {upload.offset:,}; go on from there.", code="offset"
        )
    if offset + declared > upload.bytes:
        raise TooLarge(f"The piece goes {offset + declared - upload.bytes:,} bytes beyond the end of {upload.name}.")
    check_free_space(bytes_wanted=declared)
    piece = partial_files.PieceWriter(upload.key, offset=offset)
    digest = hashlib.new(checksum.algorithm) if checksum else None
    try:
        piece.write(_limit_and_hash(chunks, declared=declared, digest=digest))
    except OSError:
        # the connection broke: the bytes that came are kept, unless a checksum covers the whole piece
        if checksum is not None:
            piece.undo()
            raise
    except BaseException:
        piece.undo()
        raise
    if checksum is not None and digest is not None and digest.digest() != checksum.digest:
        piece.undo()
        raise ChecksumMismatch(
            f"The {piece.bytes:,} bytes from {offset:,} on do not have the {checksum.algorithm} that came with them; "
            "send them again."
        )
    return _move_offset(upload, to=piece.sync())


def complete_upload(
    *,
    user: User,
    uploads: Sequence[PartialUpload],
    roles: Mapping[str, FileRole],
    model: str = "",
    note: str = "",
    recipe: str = "",
    origin: Origin = OWN_LINE,
) -> Version:
    """Make a version of whole uploads, as `receive_upload` does of drafts, and remove their files; the rows stay.

    Completing the same uploads again returns the same version. Raises Invalid for no uploads, Gone for an expired one,
    Conflict where an upload is not whole, has become part of another version or belongs to another team than the
    others, Missing where its bytes are gone, Unprocessable for another sha256 than announced, and what `receive_upload`
    raises.
    """
    versions = {upload.version for upload in uploads}
    if len(versions) == 1 and (version := versions.pop()) is not None and model in ("", version.model.name):
        return version
    team = _check_uploads(uploads)
    keys = [upload.key for upload in uploads]
    drafts: list[Draft] = []
    try:
        for upload in uploads:
            partial_files.refuse_writers(upload.key)
            drafts.append(_link_to_draft(upload))
        version = receive_upload(
            user=user, files=drafts, roles=roles, recipe=recipe, model=model, note=note, team=team.name, origin=origin
        )
    except BaseException:
        for draft in drafts:
            draft.discard()
        for key in keys:
            partial_files.accept_writers(key)
        raise
    PartialUpload.objects.filter(key__in=keys).update(version=version)
    for key in keys:
        partial_files.remove_partial(key)
    return version


def cancel_upload(*, upload: PartialUpload) -> None:
    PartialUpload.objects.filter(pk=upload.pk).delete()
    partial_files.remove_partial(upload.key)


def check_not_expired(upload: PartialUpload) -> None:
    if upload.expires_at <= timezone.now():
        raise Gone(f"The upload of {upload.name} has expired; start it again.", code="expired")


def clear_expired() -> int:
    """Remove expired uploads with their bytes, those that have become a version included; return how many.

    The versions stay.
    """
    expired = list(PartialUpload.objects.filter(expires_at__lte=timezone.now()))
    for upload in expired:
        cancel_upload(upload=upload)
    return len(expired)


def _check_room(team: Team, user: User, length: int) -> None:
    """Raise TooLarge over the quota, in which unfinished uploads count, or with MAX_OPEN unfinished uploads.

    Call this with the team's row locked.
    """
    waiting = PartialUpload.objects.not_expired().filter(version=None)
    if waiting.filter(user=user).count() >= MAX_OPEN:
        raise TooLarge(f"You have {MAX_OPEN} unfinished uploads; complete or delete one.", code="too_many_uploads")
    reserved = waiting.filter(team=team).aggregate(total=Sum("bytes"))["total"] or 0
    check_free_quota(team, length, reserved_bytes=reserved)


def _limit_and_hash(chunks: Iterable[bytes], *, declared: int, digest: "hashlib._Hash | None") -> Iterator[bytes]:
    """Yield the chunks up to the declared length, and add them to the digest, if there is one."""
    missing = declared
    for chunk in chunks:
        piece = chunk[:missing]
        missing -= len(piece)
        if digest is not None:
            digest.update(piece)
        if piece:
            yield piece
        if not missing:
            return


def _move_offset(upload: PartialUpload, *, to: int) -> PartialUpload:
    now = timezone.now()
    rows = PartialUpload.objects.filter(pk=upload.pk, offset=upload.offset)
    if not rows.update(offset=to, expires_at=now + PARTIAL_LIFE):
        raise Conflict("Another request has moved this upload on; ask for its offset.", code="taken_over")
    upload.offset, upload.expires_at = to, now + PARTIAL_LIFE
    return upload


def _check_uploads(uploads: Sequence[PartialUpload]) -> Team:
    """Check that the uploads are whole and belong to no other version; return their common team."""
    if not uploads:
        raise Invalid("No upload is named; name those that make up the model.", code="no_file")
    for upload in uploads:
        check_not_expired(upload)
        if upload.version_id is not None:
            raise Conflict(f"{upload.name} has become part of another version already.", code="used")
        if not upload.is_whole:
            raise Conflict(
                f"{upload.name} has {upload.offset:,} of its {upload.bytes:,} bytes; send the rest first.",
                code="not_whole",
            )
    teams = {upload.team_id for upload in uploads}
    if len(teams) > 1:
        raise Conflict("The uploads belong to different teams.", code="different_teams")
    return uploads[0].team


def _link_to_draft(upload: PartialUpload) -> Draft:
    """Make a sealed draft of the upload's file, which stays where it is."""
    path = partial_files.partial_path(upload.key)
    if not path.is_file() or path.stat().st_size != upload.bytes:
        raise Missing(f"The bytes of {upload.name} are gone; start its upload again.")
    draft = Draft.link(path, name=upload.name)
    if upload.sha256 and draft.sha256 != upload.sha256:
        draft.discard()
        raise Unprocessable(
            f"{upload.name} arrived with different content than was sent: sha256 {draft.sha256[:12]}… instead of "
            f"{upload.sha256[:12]}….",
            code="checksum",
            hint="Delete the upload and start it again.",
        )
    return draft
