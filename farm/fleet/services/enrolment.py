"""How a machine joins: invite → enrol → approve → secret. Never by address."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team, User
from farm.accounts.selectors import can_manage, can_write, teams_visible_to
from farm.accounts.services import record
from farm.base.refusals import Conflict, Missing, NotAllowed, Refusal, TooMany, Unprocessable
from farm.base.secrecy import HINT_LENGTH, hash_secret, make_secret
from farm.contract import signatures, version
from farm.contract.node import SIGNATURE_WINDOW_S, Enrolment, SecretGrant, SecretRequest, make_secret_message
from farm.contract.numbers import is_row_number
from farm.contract.reports import Facts
from farm.fleet.models import EnrolmentCode, Node, NodeSecret
from farm.fleet.services.health import check_is_vouched
from farm.fleet.states import NodeEventKind, NodeHealth
from farm.rules.runtimes.providers import find

X86_ARCHITECTURES = ("x86_64", "amd64", "i386", "i686", "x86")
ARM_ARCHITECTURES = ("aarch64", "arm64", "armv7l", "armv8l")
# facts are stored and shown; a page of text is enough
MAX_FACTS_BYTES = 65_536
log = logging.getLogger(__name__)
VERB: Final = "node refused"
ENROLMENT_VERB: Final = "enrolment refused"
# entries older than this are removed as new ones come
KEPT_REFUSALS: Final = timedelta(days=90)
STRANGER: Final = "an unknown secret"
# the same refusal again within this time is one entry, so that nobody can fill the log
ONCE_IN: Final = timedelta(minutes=10)
# part of every day: a block that another node was given first, a node that nobody has approved yet
ROUTINE: Final = ("not_offered", "busy", "pending")
CLAIM: Final = "claim"
# said by the enrolment itself, with the machine's name
ENROLMENT: Final = ("bad_code", "known_key", "known_name")
CODE_PREFIX = "ofe_"
SECRET_PREFIX = "ofn_"
CODE_LIFE = timedelta(minutes=60)
SECRET_LIFE = timedelta(days=90)
ROTATE_AFTER = 0.75
# how long the secret before the newest still opens
OVERLAP = timedelta(minutes=10)
# secrets of one node an hour, codes that wait for a machine by the role of who made them, nodes that wait for approval
MOST_SECRETS = 12
MOST_CODES, MOST_CODES_OF_ADMIN = 20, 2_000
MOST_PENDING = 50
# a code that nobody used, and a secret that opens nothing any more, are forgotten after so long
KEPT = timedelta(days=7)


def check_facts(facts: Facts) -> None:
    """Raises Unprocessable when the facts are larger than any machine needs."""
    size = len(facts.model_dump_json())
    if size > MAX_FACTS_BYTES:
        raise Unprocessable(
            f"The facts take {size} bytes; at most {MAX_FACTS_BYTES} are taken.", code="facts_too_large"
        )


def check_tags(tags: Mapping[str, str], facts: Facts, *, proven: Collection[str]) -> None:
    """Raises Unprocessable for a tag that has no evidence, or that the node contradicts itself.

    `tags`: each with its evidence. `proven`: ONNX Runtime's names of the providers that a probe saw executing.
    """
    arch = facts.arch.lower()
    for tag, evidence in tags.items():
        provider = find(tag)
        if not evidence.strip():
            raise Unprocessable(f"The tag “{tag}” came without evidence.", code="false_tag")
        if provider is not None and provider.tag == tag and provider.name not in proven:
            raise Unprocessable(
                f"The tag “{tag}” was claimed, and no probe saw {provider.name} executing.", code="false_tag"
            )
    for tag, allowed in (("x86", X86_ARCHITECTURES), ("arm", ARM_ARCHITECTURES)):
        if tag in tags and arch not in allowed:
            raise Unprocessable(f"A {facts.arch} machine cannot carry the tag “{tag}”.", code="false_tag")


def log_refusal(*, node: Node | None, secret: str, address: str, status: int, code: str, detail: str) -> None:
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


def log_refused_enrolment(*, name: str, invitation: EnrolmentCode | None, code: str) -> None:
    """Writes that a machine was refused to join, once for each code, and once for all codes that there never were."""
    told = {"code": code, "invitation": invitation.pk if invitation else None}
    since = timezone.now() - ONCE_IN
    same = {f"facts__{key}": value for key, value in told.items()}
    if not AuditEvent.objects.filter(verb=ENROLMENT_VERB, at__gt=since, **same).exists():
        _write(ENROLMENT_VERB, name, team=invitation.team if invitation else None, facts=told)


def _write(verb: str, subject: str, *, team: Team | None, facts: Mapping[str, object]) -> None:
    AuditEvent.objects.filter(verb__in=(VERB, ENROLMENT_VERB), at__lt=timezone.now() - KEPT_REFUSALS).delete()
    record(verb=verb, subject=subject, team=team, facts=facts)


def _whose(secret: str) -> Node | None:
    """The node that a secret once opened the farm for."""
    if not secret:
        return None
    row = NodeSecret.objects.select_related("node__team").filter(digest=hash_secret(secret)).first()
    return row.node if row is not None else None


def invite(
    *, team: Team, by: User, life: timedelta = CODE_LIFE, auto_approve: bool = False
) -> tuple[EnrolmentCode, str]:
    """A code that lets one machine join the team once; the machine then belongs to `by`.

    `auto_approve` skips the approval, for the farm's own machine. Raises Missing for a team that `by` is not in,
    NotAllowed for a viewer, and for `auto_approve` by anybody but an admin of the team; TooMany while many wait.
    """
    if not teams_visible_to(by).filter(pk=team.pk).exists():
        raise Missing("There is no such team that you belong to.")
    allowed = can_manage(by, team=team) if auto_approve else can_write(by, team=team)
    if not allowed:
        raise NotAllowed(
            f"Your role in team “{team.name}” does not let you invite a node this way; ask an admin of it."
        )
    code = make_secret(CODE_PREFIX)
    with transaction.atomic():
        # one at a time of a person: each counts those before it
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        _check_open_codes(by, most=MOST_CODES_OF_ADMIN if can_manage(by, team=team) else MOST_CODES)
        row = EnrolmentCode.objects.create(
            team=team,
            created_by=by,
            digest=hash_secret(code),
            auto_approve=auto_approve,
            expires_at=timezone.now() + life,
        )
        record(verb="node invited", subject=f"code {row.pk}", actor=by, team=team)
    return row, code


def enrol(enrolment: Enrolment) -> Node:
    """A new node, pending until somebody approves it. Raises NotAllowed for a code used, late or unknown.

    Also raises Unprocessable for a node of another contract version or a malformed key, Conflict for a known key.
    """
    _check_enrolment(enrolment)
    try:
        return _joined(enrolment)
    except Refusal as refusal:
        invitation = EnrolmentCode.objects.select_related("team").filter(digest=hash_secret(enrolment.code)).first()
        log_refused_enrolment(name=enrolment.name, invitation=invitation, code=refusal.code)
        raise


def approve(*, node: Node, by: User) -> Node:
    """pending → active: from now on the node gets a secret and blocks. Raises NotAllowed, Conflict."""
    if not can_manage(by, team=node.team):
        raise NotAllowed(f"Only an admin of team “{node.team.name}” may approve {node.name}.")
    check_is_vouched(node)
    with transaction.atomic():
        if node.health != NodeHealth.PENDING or not node.change_health(
            NodeHealth.ACTIVE, NodeEventKind.APPROVED, actor=by
        ):
            raise Conflict(f"{node.name} is {node.health}, not pending; there is nothing to approve.")
        record(verb="node approved", subject=node.name, actor=by, team=node.team, facts={"key": node.fingerprint})
    return node


def grant_secret(request: SecretRequest, *, now: datetime | None = None) -> SecretGrant:
    """A new bearer secret for whoever holds the node's private key; the one before works OVERLAP longer.

    Raises NotAllowed with code `pending` until approved, `retired`, or `bad_signature`.
    """
    now = now or timezone.now()
    node = _proven_node(request, now=now)
    if node.health == NodeHealth.PENDING:
        raise NotAllowed(
            f"{node.name} waits for approval; compare the fingerprint {node.fingerprint} on its page.", code="pending"
        )
    secret = make_secret(SECRET_PREFIX)
    with transaction.atomic():
        Node.objects.select_for_update(no_key=True).get(pk=node.pk)
        _check_secrets(node, now=now)
        node.secrets.filter(expires_at__lt=now - KEPT).delete()
        node.secrets.filter(expires_at__gt=now + OVERLAP).update(expires_at=now + OVERLAP)
        NodeSecret.objects.create(
            node=node, hint=secret[:HINT_LENGTH], digest=hash_secret(secret), expires_at=now + SECRET_LIFE
        )
        node.log(NodeEventKind.SECRET_ISSUED, f"{node.name} proved its key and got a new secret.")
    return SecretGrant(secret=secret, expires_at=now + SECRET_LIFE, rotate_at=now + SECRET_LIFE * ROTATE_AFTER)


def _check_open_codes(by: User, *, most: int) -> None:
    """Raises TooMany while so many codes of this person wait for a machine; forgets those that waited in vain."""
    now = timezone.now()
    own = EnrolmentCode.objects.filter(created_by=by, used_at=None)
    own.filter(expires_at__lt=now - KEPT).delete()
    waiting = own.filter(expires_at__gt=now).order_by("expires_at").values_list("expires_at", flat=True)
    if waiting.count() >= most:
        raise TooMany(
            f"{most} enrolment codes of yours wait for a machine; use them, or make more once the oldest has expired.",
            retry_s=(waiting[0] - now).total_seconds(),
        )


def _check_secrets(node: Node, *, now: datetime) -> None:
    """Raises TooMany for a node that asks for secrets again and again."""
    hour = timedelta(hours=1)
    latest = node.secrets.filter(created_at__gt=now - hour).order_by("created_at").values_list("created_at", flat=True)
    if len(latest) >= MOST_SECRETS:
        raise TooMany(
            f"{node.name} was given {len(latest)} secrets within an hour; it keeps the newest.",
            retry_s=(latest[0] + hour - now).total_seconds(),
        )


def _check_pending(code: EnrolmentCode) -> None:
    """Raises TooMany while so many nodes of one owner wait for their approval."""
    pending = Node.objects.filter(owner=code.created_by, team=code.team, health=NodeHealth.PENDING).count()
    if pending >= MOST_PENDING:
        raise TooMany(
            f"{pending} nodes of this owner wait for approval in team “{code.team.name}”.",
            retry_s=600,
            hint="Have an admin of the team approve or revoke them, then enrol again with the same code.",
        )


def _check_enrolment(enrolment: Enrolment) -> None:
    if not version.is_supported(enrolment.contract_version):
        raise Unprocessable(
            f"This node speaks version {enrolment.contract_version} of the contract and the farm speaks "
            f"{version.describe_supported_versions()}.",
            code="contract_version",
            hint="Install the same release of onnxfarm on the node as on the farm.",
        )
    try:
        signatures.make_fingerprint(enrolment.public_key)
    except signatures.BadKeyError as problem:
        raise Unprocessable(str(problem), code="bad_key") from problem
    check_facts(enrolment.facts)


def _joined(enrolment: Enrolment) -> Node:
    """Raises as `enrol`, also where another gateway let a machine of this name, or this key, in at the same moment."""
    try:
        with transaction.atomic():
            return _enrolled(enrolment)
    except IntegrityError as problem:
        raise _known_name(enrolment.name) from problem


def _enrolled(enrolment: Enrolment) -> Node:
    now = timezone.now()
    code = EnrolmentCode.objects.select_related("team").filter(digest=hash_secret(enrolment.code)).first()
    fresh = EnrolmentCode.objects.filter(used_at=None, expires_at__gt=now)
    if code is None or not fresh.filter(pk=code.pk).update(used_at=now):
        raise NotAllowed(
            "This enrolment code was used, has expired or never existed.",
            code="bad_code",
            hint="Make another with “Add a node” on the farm's fleet page.",
        )
    if Node.objects.filter(public_key=enrolment.public_key).exists():
        raise Conflict("A node with this key has joined already; make a new key pair.", code="known_key")
    if not code.auto_approve:
        _check_pending(code)
    _must_be_free(enrolment.name)
    _must_be_welcome(code)
    node = Node.objects.create(
        team=code.team,
        owner=code.created_by,
        name=enrolment.name,
        public_key=enrolment.public_key,
        fingerprint=signatures.make_fingerprint(enrolment.public_key),
        health=NodeHealth.ACTIVE if code.auto_approve else NodeHealth.PENDING,
        contract_version=enrolment.contract_version,
        facts_json=enrolment.facts.model_dump(mode="json"),
        sandbox=enrolment.facts.sandbox,
        is_emulated=enrolment.facts.is_emulated,
        self_test_json=enrolment.self_test.model_dump(mode="json") if enrolment.self_test else None,
    )
    EnrolmentCode.objects.filter(pk=code.pk).update(node=node)
    node.log(NodeEventKind.ENROLLED, f"{node.name} joined with the key {node.fingerprint}.", actor=code.created_by)
    record(verb="node enrolled", subject=node.name, actor=code.created_by, team=code.team)
    return node


def _must_be_welcome(code: EnrolmentCode) -> None:
    """Raises NotAllowed for a code whose maker left the team, may only look there, or was deactivated."""
    by = code.created_by
    if by is None or not by.is_active or not can_write(by, team=code.team):
        raise NotAllowed(
            f"The creator of this code can no longer add nodes to team “{code.team.name}”.",
            code="bad_code",
            hint="Make another with “Add a node” on the farm's fleet page.",
        )


def _must_be_free(name: str) -> None:
    """Raises Conflict for the name of a node that is part of the farm: a matrix may name it."""
    if Node.objects.filter(name__iexact=name).exclude(health=NodeHealth.RETIRED).exists():
        raise _known_name(name)


def _known_name(name: str) -> Conflict:
    return Conflict(
        f"A node named “{name}” is part of this farm already.",
        code="known_name",
        hint="Give this one another name with --name, or retire the other first.",
    )


def _proven_node(request: SecretRequest, *, now: datetime) -> Node:
    # as numbers: a clock of a node may say years that no date has
    apart_s = abs(now.timestamp() - request.signed_at)
    if apart_s > SIGNATURE_WINDOW_S:
        raise NotAllowed(
            f"The request was signed {apart_s:.0f} s away from the farm's clock.",
            code="bad_clock",
            hint="Set the node's clock.",
        )
    node = Node.objects.filter(pk=request.node_id).first() if is_row_number(request.node_id) else None
    message = make_secret_message(request.node_id, request.signed_at)
    if node is None or not signatures.is_signature_valid(node.public_key, message, request.signature):
        raise NotAllowed("The signature does not fit a node of this farm.", code="bad_signature")
    if node.health == NodeHealth.RETIRED:
        raise NotAllowed(f"{node.name} was removed from this farm.", code="retired")
    return node
