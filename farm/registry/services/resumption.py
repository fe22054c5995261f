"""Uploads in pieces: begin, append as often as needed, complete into a version. After tus 1.0 (tus.io/protocols)."""

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
from farm.registry.services.uploads import free_quota_bytes, receive_upload
from farm.registry.states import FileRole
from farm.registry.storage import Draft, check_free_space
from farm.registry.upload_handler import check_length

# an upload that has not moved for so long is removed
PARTIAL_LIFE: Final = timedelta(hours=24)
MAX_OPEN: Final = 128
NAME_LENGTH: Final = 200
# algorithms of Upload-Checksum
CHECKSUMS: Final = ("sha1", "sha256")


class ChecksumMismatch(Refusal):
    """What arrived is not what was sent; tus gives it a status of its own."""

    status = 460
    default_code = "checksum"


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the sender says a piece has: an algorithm of CHECKSUMS and the digest's bytes."""

    algorithm: str
    digest: bytes


def parse_checksum(header: str) -> Checksum | None:
    """The value of Upload-Checksum, `sha256 <base64>`; None when there is none. Raises Invalid."""
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
    """A new, empty upload of one file. Raises Invalid, NotAllowed, Missing, TooLarge and NoSpace."""
    owner = team_to_write(user, name=team)
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise Invalid(f"A file's name has 1 to {NAME_LENGTH} printable characters.", code="bad_name")
    if sha256 and not (len(sha256) == 64 and set(sha256) <= set("0123456789abcdef")):
        raise Invalid("A sha256 has 64 digits from 0 to f.", code="bad_checksum")
    check_length(length)
    with transaction.atomic():
        locked = Team.objects.select_for_update().get(pk=owner.pk)
        _check_room_of(locked, user, length)
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
    """Add a piece at `offset`; `declared` is its length as the request tells it.

    A piece that ends early is kept as far as it came, unless it has a checksum: then nothing of it is kept. Raises
    Gone, Conflict (wrong offset, taken over), TooLarge, ChecksumMismatch and NoSpace.
    """
    check_not_expired(upload)
    if offset != upload.offset:
        raise Conflict(
            f"The piece starts at {offset:,} and the upload is at {upload.offset:,}; go on from there.", code="offset"
        )
    if offset + declared > upload.bytes:
        raise TooLarge(f"The piece goes {offset + declared - upload.bytes:,} bytes beyond the end of {upload.name}.")
    check_free_space(bytes_wanted=declared)
    piece = partial_files.Piece(upload.key, offset=offset)
    digest = hashlib.new(checksum.algorithm) if checksum else None
    try:
        piece.write(_counted(chunks, declared=declared, digest=digest))
    except OSError:
        # the connection broke: what has come stays, where it need not be checked as a whole
        if checksum is not None:
            piece.drop()
            raise
    except BaseException:
        piece.drop()
        raise
    if checksum is not None and digest is not None and digest.digest() != checksum.digest:
        piece.drop()
        raise ChecksumMismatch(
            f"The {piece.bytes:,} bytes from {offset:,} on do not have the {checksum.algorithm} that came with them; "
            "send them again."
        )
    return _moved(upload, to=piece.keep())


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
    """Make a version of whole uploads, as `receive_upload` does of drafts; `roles` by file name.

    Completing the same uploads again answers the same version. Raises Invalid for none, Conflict while one is not
    whole or when they belong to different teams or versions, and what `receive_upload` raises.
    """
    known = {upload.version for upload in uploads}
    if len(known) == 1 and (made := known.pop()) is not None and model in ("", made.model.name):
        return made
    team = _checked(uploads)
    keys = [upload.key for upload in uploads]
    drafts: list[Draft] = []
    try:
        for upload in uploads:
            partial_files.close_to_writers(upload.key)
            drafts.append(_drafted(upload))
        version = receive_upload(
            user=user, files=drafts, roles=roles, recipe=recipe, model=model, note=note, team=team.name, origin=origin
        )
    except BaseException:
        for draft, key in zip(drafts, keys, strict=False):
            draft.discard()
            partial_files.reopen_to_writers(key)
        for key in keys[len(drafts) :]:
            partial_files.reopen_to_writers(key)
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
    """Remove uploads that have not moved for a day, with their bytes; answers how many."""
    late = list(PartialUpload.objects.filter(expires_at__lte=timezone.now()))
    for upload in late:
        cancel_upload(upload=upload)
    return len(late)


def _check_room_of(team: Team, user: User, length: int) -> None:
    """Call with the team's row locked: what other open uploads will take counts too."""
    waiting = PartialUpload.objects.not_expired().filter(version=None)
    if waiting.filter(user=user).count() >= MAX_OPEN:
        raise TooLarge(f"You have {MAX_OPEN} unfinished uploads; complete or delete one.", code="too_many_uploads")
    taken = waiting.filter(team=team).aggregate(total=Sum("bytes"))["total"] or 0
    left = max(0, free_quota_bytes(team) - taken)
    if length > left:
        raise TooLarge(
            f"The upload has {length:,} bytes; team “{team.name}” has {left:,} of its {team.quota_bytes:,} left.",
            code="quota",
            hint="Remove versions that no run has measured, or ask an administrator for a larger quota.",
        )


def _counted(chunks: Iterable[bytes], *, declared: int, digest: "hashlib._Hash | None") -> Iterator[bytes]:
    """The chunks, hashed, and cut off where the piece was declared to end."""
    left = declared
    for chunk in chunks:
        piece = chunk[:left]
        left -= len(piece)
        if digest is not None:
            digest.update(piece)
        if piece:
            yield piece
        if not left:
            return


def _moved(upload: PartialUpload, *, to: int) -> PartialUpload:
    now = timezone.now()
    rows = PartialUpload.objects.filter(pk=upload.pk, offset=upload.offset)
    if not rows.update(offset=to, expires_at=now + PARTIAL_LIFE):
        raise Conflict("Another request has moved this upload on; ask for its offset.", code="taken_over")
    upload.offset, upload.expires_at = to, now + PARTIAL_LIFE
    return upload


def _checked(uploads: Sequence[PartialUpload]) -> Team:
    """The one team of whole, fresh uploads."""
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


def _drafted(upload: PartialUpload) -> Draft:
    """A sealed draft with the upload's bytes; they stay the upload's too, until the draft is kept."""
    path = partial_files.partial_path(upload.key)
    if not path.is_file() or path.stat().st_size != upload.bytes:
        raise Missing(f"The bytes of {upload.name} are gone; start its upload again.")
    draft = Draft.linked(path, name=upload.name)
    if upload.sha256 and draft.sha256 != upload.sha256:
        draft.discard()
        raise Unprocessable(
            f"{upload.name} arrived with different content than was sent: sha256 {draft.sha256[:12]}… instead of "
            f"{upload.sha256[:12]}….",
            code="checksum",
            hint="Delete the upload and start it again.",
        )
    return draft
