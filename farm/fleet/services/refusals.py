"""What nodes were refused, in the audit log: a broken node and a lying one look alike, and somebody must look."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from django.db import DatabaseError
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team
from farm.accounts.services import record
from farm.base.secrecy import digest_of_secret
from farm.fleet.models import EnrolmentCode, Node, NodeSecret

log = logging.getLogger(__name__)
VERB: Final = "node refused"
ENROLMENT_VERB: Final = "enrolment refused"
# entries older than this are removed as new ones come
KEPT: Final = timedelta(days=90)
STRANGER: Final = "an unknown secret"
# the same refusal again within this time is one entry, so that nobody can fill the log
ONCE_IN: Final = timedelta(minutes=10)
# part of every day: a block that another node was given first, a node that nobody has approved yet
ROUTINE: Final = ("not_offered", "busy", "pending")
CLAIM: Final = "claim"
# said by the enrolment itself, with the machine's name
ENROLMENT: Final = ("bad_code", "known_key", "known_name")


def note_refusal(*, node: Node | None, secret: str, address: str, status: int, code: str, detail: str) -> None:
    """Writes that a node, or whoever showed a node's secret, was refused at an address; never raises."""
    if code in ROUTINE or code in ENROLMENT or (code == "stale" and address == CLAIM):
        return
    try:
        known = node or _whose(secret)
        subject = known.name if known is not None else STRANGER
        told = {"address": address, "code": code, "status": status}
        since = timezone.now() - ONCE_IN
        same = {f"facts__{key}": value for key, value in told.items()}
        if AuditEvent.objects.filter(verb=VERB, subject=subject, at__gt=since, **same).exists():
            return
        _write(VERB, subject, team=known.team if known else None, facts={**told, "detail": detail[:300]})
    except DatabaseError as problem:
        # the answer is the refusal all the same
        log.warning("could not note that %s was refused at %s: %s", node, address, problem)


def note_enrolment(*, name: str, invitation: EnrolmentCode | None, code: str) -> None:
    """Writes that a machine was refused to join, once for each code, and once for all codes that there never were."""
    told = {"code": code, "invitation": invitation.pk if invitation else None}
    since = timezone.now() - ONCE_IN
    same = {f"facts__{key}": value for key, value in told.items()}
    if not AuditEvent.objects.filter(verb=ENROLMENT_VERB, at__gt=since, **same).exists():
        _write(ENROLMENT_VERB, name, team=invitation.team if invitation else None, facts=told)


def _write(verb: str, subject: str, *, team: Team | None, facts: Mapping[str, object]) -> None:
    AuditEvent.objects.filter(verb__in=(VERB, ENROLMENT_VERB), at__lt=timezone.now() - KEPT).delete()
    record(verb=verb, subject=subject, team=team, facts=facts)


def _whose(secret: str) -> Node | None:
    """The node that a secret once opened the farm for."""
    if not secret:
        return None
    row = NodeSecret.objects.select_related("node__team").filter(digest=digest_of_secret(secret)).first()
    return row.node if row is not None else None
