"""Blobs of a team, and the room that is left for more of them."""

from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.db.models import Sum

from farm.accounts.models import Team
from farm.base.refusals import TooLarge
from farm.registry.models import Blob
from farm.registry.storage import Draft, place


def room_left(team: Team) -> int:
    """Bytes until the team's quota is used up."""
    used: int = team.blobs.aggregate(total=Sum("bytes"))["total"] or 0
    return max(0, team.quota_bytes - used)


def check_quota(team: Team, sizes: Mapping[str, int]) -> None:
    """Raises TooLarge when files of these sizes, by digest, that the team does not have yet are more than its room."""
    known = set(team.blobs.filter(sha256__in=sizes).values_list("sha256", flat=True))
    wanted = sum(size for sha256, size in sizes.items() if sha256 not in known)
    left = room_left(team)
    if wanted > left:
        raise TooLarge(
            f"The upload adds {wanted:,} bytes; team “{team.name}” has {left:,} of its {team.quota_bytes:,} left.",
            code="quota",
            hint="Remove versions that no run has measured, or ask an administrator for a larger quota.",
        )


def store_blob(*, team: Team, draft: Draft) -> Blob:
    """Keep one file on its own, such as inputs that the farm made itself. No quota stops it."""
    try:
        with transaction.atomic():
            # whoever removes a file of the same content looks for its row with this lock held
            return keep_blob(Team.objects.select_for_update().get(pk=team.pk), draft)
    finally:
        draft.discard()


def add_blob(*, team: Team, draft: Draft) -> Blob:
    """Keeps a file that counts against the team's quota. Call inside a transaction. Raises TooLarge, NoSpace, Away."""
    # one at a time per team decides about its quota
    locked = Team.objects.select_for_update().get(pk=team.pk)
    check_quota(locked, {draft.sha256: draft.bytes})
    return keep_blob(locked, draft)


def keep_blob(team: Team, draft: Draft) -> Blob:
    """Row and file in one transaction: a roll-back leaves at most a file without a row, never the reverse.

    Call with the team's lock held, which removing a file waits for.
    """
    try:
        with transaction.atomic():
            blob, is_new = Blob.objects.get_or_create(team=team, sha256=draft.sha256, defaults={"bytes": draft.bytes})
    except IntegrityError:
        blob, is_new = Blob.objects.get(team=team, sha256=draft.sha256), False
    if is_new or not place(team_id=team.pk, sha256=draft.sha256).exists():
        draft.keep(team_id=team.pk)
    return blob
