"""Joins a farm by a one-time code and a new key pair, waits for a person's approval, and renews the node's secret."""

import logging
import secrets
import threading
import time
from datetime import UTC, datetime

from farm.contract import node as messages
from farm.contract import signatures
from farm.contract.reports import Facts
from farm.contract.version import CONTRACT_VERSION
from worker.agent.connection.gateway import Gateway, LeaseLostError, RejectedError, UnavailableError
from worker.agent.connection.mailbox import compute_backoff_s
from worker.agent.home import Identity, NodeHome

logger = logging.getLogger(__name__)

# the code of the farm's refusal until a person approves the node
PENDING = "pending"
# a node that waits for approval pauses this long at first; the pauses grow up to the maximum
APPROVAL_S = 1.0
MAX_APPROVAL_S = 30.0


class AlreadyEnrolledError(RuntimeError):
    """The folder holds a node already."""


class StoppedError(RuntimeError):
    """The agent was stopped while it waited."""


def enrol(
    home: NodeHome, *, url: str, code: str, name: str, facts: Facts, self_test: messages.SelfTest | None = None
) -> tuple[Identity, messages.Enrolled]:
    """Make this machine a node of the farm at `url`, and store its identity and new private key in the home folder.

    The node is pending until a person approves its fingerprint. `url` may be the address of the farm's pages, which
    name the gateway; the gateway's address is stored. Raises AlreadyEnrolledError where the home has an identity (or
    NotEnrolledError where that is invalid), and ValueError for an address that `check_url` refuses. Raises GatewayError
    where the farm is away or refuses, for instance a used or expired code: LeaseLostError if another node has the name.
    """
    if home.is_enrolled:
        present = home.load_identity()
        raise AlreadyEnrolledError(
            f"{home.folder} is node {present.name!r} of {present.url} already; start it with `onnxfarm node start`, or "
            f"choose another folder with --home."
        )
    private = signatures.make_private_key()
    enrolment = messages.Enrolment(
        code=code,
        name=name,
        public_key=signatures.derive_public_key(private),
        facts=facts,
        contract_version=CONTRACT_VERSION,
        self_test=self_test,
    )
    address, enrolled = _send_enrolment(url, enrolment)
    identity = Identity(
        url=address,
        node_id=enrolled.node_id,
        name=name,
        private_key=private,
        fingerprint=signatures.make_fingerprint(enrolment.public_key),
    )
    home.store_identity(identity)
    return identity, enrolled


def _send_enrolment(url: str, enrolment: messages.Enrolment) -> tuple[str, messages.Enrolled]:
    """Send an enrolment; if the farm's pages answer, send it to the gateway that they name.

    Return the address that enrolled the node, and its answer.
    """
    try:
        with Gateway(url) as gateway:
            return gateway.url, gateway.enrol(enrolment)
    except RejectedError as refusal:
        if refusal.code != messages.ELSEWHERE or not refusal.gateway:
            raise
        with Gateway(refusal.gateway) as gateway:
            return gateway.url, gateway.enrol(enrolment)


def enrol_by_host_name(
    home: NodeHome, *, url: str, code: str, name: str, facts: Facts, self_test: messages.SelfTest | None = None
) -> tuple[Identity, messages.Enrolled]:
    """Enrol under a host's name. If another node has it, try once more with a random ending.

    Arguments, return value and exceptions are those of `enrol`.
    """
    try:
        return enrol(home, url=url, code=code, name=name, facts=facts, self_test=self_test)
    except LeaseLostError as problem:
        other = f"{name[:58]}-{secrets.token_hex(2)}"
        logger.warning("%s This machine joins as %s.", problem, other)
        return enrol(home, url=url, code=code, name=other, facts=facts, self_test=self_test)


def renew_secret(home: NodeHome, gateway: Gateway, identity: Identity) -> messages.SecretGrant:
    """Prove the private key to get a new secret, store it in the home and make the gateway use it.

    Raises GatewayError where the farm refuses or is away, and OSError where the secret cannot be stored.
    """
    signed_at = int(time.time())
    signature = signatures.sign(identity.private_key, messages.make_secret_message(identity.node_id, signed_at))
    request = messages.SecretRequest(node_id=identity.node_id, signed_at=signed_at, signature=signature)
    grant = gateway.request_secret(request)
    home.store_secret(grant)
    gateway.use_secret(grant.secret)
    return grant


def is_renewal_due(grant: messages.SecretGrant, *, now: datetime | None = None) -> bool:
    return (now or datetime.now(UTC)) >= grant.rotate_at


def wait_for_approval(
    home: NodeHome, gateway: Gateway, identity: Identity, *, stop: threading.Event
) -> messages.SecretGrant:
    """Wait until the node is approved, and return its secret, which the gateway then uses.

    A stored secret that is not due for renewal is returned without asking the farm. While the farm is away, the request
    is repeated. Raises StoppedError when `stop` is set, RejectedError when the farm refuses the node, for instance a
    retired one, NodeUnknownError when it does not know the node, and OSError where the secret cannot be stored.
    """
    grant = home.load_secret()
    if grant is not None and not is_renewal_due(grant):
        gateway.use_secret(grant.secret)
        return grant
    tries, logged = 0, ""
    while True:
        tries += 1
        try:
            return renew_secret(home, gateway, identity)
        except RejectedError as problem:
            if problem.code != PENDING:
                raise
            sentence, pause = str(problem), min(MAX_APPROVAL_S, APPROVAL_S * 1.2 ** min(tries, 32))
        except UnavailableError as problem:
            sentence, pause = f"The farm is not responding ({problem}); retrying.", compute_backoff_s(tries)
        if sentence != logged:
            logger.warning("%s", sentence)
            logged = sentence
        if stop.wait(pause):
            raise StoppedError("The agent was stopped before the node was approved.")
