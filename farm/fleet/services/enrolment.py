"""Lets a machine join the farm (invite → enrol → approve → secret), and logs refused machines."""

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
from farm.fleet.services.health import check_owner_may_write
from farm.fleet.states import NodeEventKind, NodeHealth
from farm.rules.runtimes.providers import find

X86_ARCHITECTURES = ("x86_64", "amd64", "i386", "i686", "x86")
ARM_ARCHITECTURES = ("aarch64", "arm64", "armv7l", "armv8l")
# facts are stored and shown, so that their size is limited to a page of text
MAX_FACTS_BYTES = 65_536
log = logging.getLogger(__name__)
VERB: Final = "node refused"
ENROLMENT_VERB: Final = "enrolment refused"
# refusals in the audit log that are older than this are deleted as new ones are written
KEPT_REFUSALS: Final = timedelta(days=90)
STRANGER: Final = "an unknown secret"
# the same refusal within this time is logged once, so that nobody can fill the log
LOGGED_ONCE_IN: Final = timedelta(minutes=10)
# everyday refusals, which are not logged: another node was first, or the node is not approved yet
ROUTINE: Final = ("not_offered", "busy", "pending")
CLAIM: Final = "claim"
# refusals that `enrol` itself logs, with the machine's name
ENROLMENT: Final = ("bad_code", "known_key", "known_name")
CODE_PREFIX = "ofe_"
SECRET_PREFIX = "ofn_"
CODE_LIFE = timedelta(minutes=60)
SECRET_LIFE = timedelta(days=90)
ROTATE_AFTER = 0.75
# how long the previous secret is still accepted
OVERLAP = timedelta(minutes=10)
# limits: secrets of a node in an hour, unused codes of a person and of an admin, nodes of an owner that are pending
MAX_SECRETS = 12
MAX_CODES, MAX_CODES_OF_ADMIN = 20, 2_000
MAX_PENDING = 50
# unused codes and expired secrets are deleted after this time
KEPT_FOR = timedelta(days=7)


def check_facts(facts: Facts) -> None:
    """Raises Unprocessable where the facts are larger than any machine needs."""
    size = len(facts.model_dump_json())
    if size > MAX_FACTS_BYTES:
        raise Unprocessable(
            f"The facts take {size} bytes; at most {MAX_FACTS_BYTES} are taken.", code="facts_too_large"
        )


def check_tags(tags: Mapping[str, str], facts: Facts, *, proven: Collection[str]) -> None:
    """Raises Unprocessable for a tag without evidence, or one that the node's own facts or probes contradict.

    `tags` maps each tag to its evidence; `proven` holds ONNX Runtime's names of the providers that a probe saw
    executing.
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
    """Write to the audit log that a node, or the sender of a node's secret, was refused at an address.

    Left out are routine refusals, those that `enrol` writes itself, stale claims, and the same one again within ten
    minutes. `detail` is cut to 300 characters. Refusals older than KEPT_REFUSALS are deleted. A failing database does
    not raise.
    """
    if code in ROUTINE or code in ENROLMENT or (code == "stale" and address == CLAIM):
        return
    try:
        owner = node or _find_owner_of_secret(secret)
        subject = owner.name if owner is not None else STRANGER
        facts = {"address": address, "code": code, "status": status}
        since = timezone.now() - LOGGED_ONCE_IN
        same = {f"facts__{key}": value for key, value in facts.items()}
        if AuditEvent.objects.filter(verb=VERB, subject=subject, at__gt=since, **same).exists():
            return
        _record_refusal(VERB, subject, team=owner.team if owner else None, facts={**facts, "detail": detail[:300]})
    except DatabaseError as problem:
        # the refusal itself does not depend on this entry
        log.warning("could not note that %s was refused at %s: %s", node, address, problem)


def log_refused_enrolment(*, name: str, invitation: EnrolmentCode | None, code: str) -> None:
    """Write to the audit log that a machine may not join, once in ten minutes for each enrolment code and refusal.

    Refusals older than KEPT_REFUSALS are deleted. `code` is the refusal's. `invitation` is None where the enrolment
    code never existed; all those count as one.
    """
    facts = {"code": code, "invitation": invitation.pk if invitation else None}
    since = timezone.now() - LOGGED_ONCE_IN
    same = {f"facts__{key}": value for key, value in facts.items()}
    if not AuditEvent.objects.filter(verb=ENROLMENT_VERB, at__gt=since, **same).exists():
        _record_refusal(ENROLMENT_VERB, name, team=invitation.team if invitation else None, facts=facts)


def _record_refusal(verb: str, subject: str, *, team: Team | None, facts: Mapping[str, object]) -> None:
    AuditEvent.objects.filter(verb__in=(VERB, ENROLMENT_VERB), at__lt=timezone.now() - KEPT_REFUSALS).delete()
    record(verb=verb, subject=subject, team=team, facts=facts)


def _find_owner_of_secret(secret: str) -> Node | None:
    """Return the node that a secret was issued to, even where it has expired since."""
    if not secret:
        return None
    row = NodeSecret.objects.select_related("node__team").filter(digest=hash_secret(secret)).first()
    return row.node if row is not None else None


def invite(
    *, team: Team, by: User, life: timedelta = CODE_LIFE, auto_approve: bool = False
) -> tuple[EnrolmentCode, str]:
    """Make an enrolment code, which lets one machine join the team once; return its row and the code itself.

    The machine will belong to `by`. `auto_approve` skips the approval, for the farm's own machine. The audit log says
    so, and old codes of `by` are deleted. Raises Missing for a team that `by` is not in, NotAllowed for a viewer and
    for `auto_approve` by anybody but an admin of the team, and TooMany while too many codes of `by` are unused.
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
        # locked, so that two requests at once count each other's codes
        User.objects.select_for_update(no_key=True).get(pk=by.pk)
        _check_open_codes(by, limit=MAX_CODES_OF_ADMIN if can_manage(by, team=team) else MAX_CODES)
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
    """Create the node of a machine that joins, and use up its code. It is pending until somebody approves it, or active
    at once where the code says so. Its log and the audit log say that it joined.

    Raises Unprocessable for an unsupported contract version, a malformed key or facts that are too large; NotAllowed
    for a code that was used, has expired or is unknown, or whose maker may no longer add nodes; Conflict for a key or
    name that another node has; TooMany while too many nodes of the owner wait. Refusals other than Unprocessable are
    written to the audit log.
    """
    _check_enrolment(enrolment)
    try:
        return _create_node_once(enrolment)
    except Refusal as refusal:
        invitation = EnrolmentCode.objects.select_related("team").filter(digest=hash_secret(enrolment.code)).first()
        log_refused_enrolment(name=enrolment.name, invitation=invitation, code=refusal.code)
        raise


def approve(*, node: Node, by: User) -> Node:
    """Approve a pending node, which then gets a secret and blocks.

    Raises NotAllowed for anybody but an admin of the team, and Conflict where the node is not pending or its owner may
    not start runs in the team any more.
    """
    if not can_manage(by, team=node.team):
        raise NotAllowed(f"Only an admin of team “{node.team.name}” may approve {node.name}.")
    check_owner_may_write(node)
    with transaction.atomic():
        if node.health != NodeHealth.PENDING or not node.change_health(
            NodeHealth.ACTIVE, NodeEventKind.APPROVED, actor=by
        ):
            raise Conflict(f"{node.name} is {node.health}, not pending; there is nothing to approve.")
        record(verb="node approved", subject=node.name, actor=by, team=node.team, facts={"key": node.fingerprint})
    return node


def grant_secret(request: SecretRequest, *, now: datetime | None = None) -> SecretGrant:
    """Issue a new bearer secret to the holder of the node's private key; those before work OVERLAP longer at most.

    The node's log says so.

    Raises NotAllowed with the code `pending` until the node is approved, `retired`, `bad_clock` or `bad_signature`, and
    TooMany where the node was given too many secrets within an hour.
    """
    now = now or timezone.now()
    node = _find_proven_node(request, now=now)
    if node.health == NodeHealth.PENDING:
        raise NotAllowed(
            f"{node.name} waits for approval; compare the fingerprint {node.fingerprint} on its page.", code="pending"
        )
    secret = make_secret(SECRET_PREFIX)
    with transaction.atomic():
        Node.objects.select_for_update(no_key=True).get(pk=node.pk)
        _check_secrets(node, now=now)
        node.secrets.filter(expires_at__lt=now - KEPT_FOR).delete()
        node.secrets.filter(expires_at__gt=now + OVERLAP).update(expires_at=now + OVERLAP)
        NodeSecret.objects.create(
            node=node, hint=secret[:HINT_LENGTH], digest=hash_secret(secret), expires_at=now + SECRET_LIFE
        )
        node.log(NodeEventKind.SECRET_ISSUED, f"{node.name} proved its key and got a new secret.")
    return SecretGrant(secret=secret, expires_at=now + SECRET_LIFE, rotate_at=now + SECRET_LIFE * ROTATE_AFTER)


def _check_open_codes(by: User, *, limit: int) -> None:
    """Delete this person's expired codes. Raises TooMany where as many unused ones are still valid."""
    now = timezone.now()
    open_codes = EnrolmentCode.objects.filter(created_by=by, used_at=None)
    open_codes.filter(expires_at__lt=now - KEPT_FOR).delete()
    waiting = open_codes.filter(expires_at__gt=now).order_by("expires_at").values_list("expires_at", flat=True)
    if waiting.count() >= limit:
        raise TooMany(
            f"{limit} enrolment codes of yours wait for a machine; use them, or make more once the oldest has expired.",
            retry_s=(waiting[0] - now).total_seconds(),
        )


def _check_secrets(node: Node, *, now: datetime) -> None:
    """Raises TooMany for a node that was given too many secrets within an hour."""
    hour = timedelta(hours=1)
    latest = node.secrets.filter(created_at__gt=now - hour).order_by("created_at").values_list("created_at", flat=True)
    if len(latest) >= MAX_SECRETS:
        raise TooMany(
            f"{node.name} was given {len(latest)} secrets within an hour; it keeps the newest.",
            retry_s=(latest[0] + hour - now).total_seconds(),
        )


def _check_pending(code: EnrolmentCode) -> None:
    """Raises TooMany while too many nodes of the code's maker wait for their approval."""
    pending = Node.objects.filter(owner=code.created_by, team=code.team, health=NodeHealth.PENDING).count()
    if pending >= MAX_PENDING:
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


def _create_node_once(enrolment: Enrolment) -> Node:
    """Create the node. Raises Conflict also where another gateway creates one of this name at the same moment."""
    try:
        with transaction.atomic():
            return _create_node(enrolment)
    except IntegrityError as problem:
        raise _make_known_name_error(enrolment.name) from problem


def _create_node(enrolment: Enrolment) -> Node:
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
    _check_name_is_free(enrolment.name)
    _check_code_maker(code)
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


def _check_code_maker(code: EnrolmentCode) -> None:
    """Raises NotAllowed for a code whose maker left the team, is only a viewer there, or was deactivated."""
    maker = code.created_by
    if maker is None or not maker.is_active or not can_write(maker, team=code.team):
        raise NotAllowed(
            f"The creator of this code can no longer add nodes to team “{code.team.name}”.",
            code="bad_code",
            hint="Make another with “Add a node” on the farm's fleet page.",
        )


def _check_name_is_free(name: str) -> None:
    # a matrix may name any node that is not retired
    if Node.objects.filter(name__iexact=name).exclude(health=NodeHealth.RETIRED).exists():
        raise _make_known_name_error(name)


def _make_known_name_error(name: str) -> Conflict:
    return Conflict(
        f"A node named “{name}” is part of this farm already.",
        code="known_name",
        hint="Give this one another name with --name, or retire the other first.",
    )


def _find_proven_node(request: SecretRequest, *, now: datetime) -> Node:
    # compared as numbers, as a node's clock may show a year that no datetime can hold
    difference_s = abs(now.timestamp() - request.signed_at)
    if difference_s > SIGNATURE_WINDOW_S:
        raise NotAllowed(
            f"The request was signed {difference_s:.0f} s away from the farm's clock.",
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
