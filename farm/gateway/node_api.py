"""The node API, `/api/node/v1/…`: messages of farm.contract.node in, services called, messages out.

Long polls are answered apart, by farm.gateway.application.
"""

from collections.abc import Iterator
from typing import TypeVar, cast

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI, Status
from ninja.errors import AuthenticationError
from pydantic import BaseModel, ValidationError

from farm.base import errors
from farm.base.refusals import Refusal, TooLarge, Unprocessable
from farm.contract import node as messages
from farm.contract.blocks import Lease
from farm.contract.reports import Reply
from farm.contract.texts import replace_controls_in_json, strip_pydantic_prefix
from farm.contract.version import CONTRACT_VERSION, name_node_queue
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.gateway.admission import HINT, UNKNOWN_NODE
from farm.gateway.endpoints import SMALL_BYTES, find_endpoints
from farm.gateway.node_auth import NodeAuth, NodeRequest
from farm.gateway.stored_files import StoredFile
from farm.gateway.tab import for_browsers
from farm.runs import broker, selectors, services

# hexadecimal digits
SHA256_LENGTH = 64
# bytes of an upload that are read at once
TRACE_CHUNK = 1 << 16
Message = TypeVar("Message", bound=BaseModel)


node_api = NinjaAPI(
    title="onnxfarm for nodes",
    version="1",
    urls_namespace="node",
    description="How nodes join, take blocks and report; see farm.contract.node.",
    auth=NodeAuth(),
    docs_url=None,
)
errors.install_error_handlers(node_api)
node_api.add_router("", for_browsers)


@node_api.exception_handler(AuthenticationError)
def answer_unknown_node(request: HttpRequest, raised: AuthenticationError) -> HttpResponse:
    _log_refusal(request, status=401, code="unknown_node", detail=UNKNOWN_NODE)
    return errors.make_problem_response(401, UNKNOWN_NODE, code="unknown_node", hint=HINT)


@node_api.exception_handler(Refusal)
def answer_refusal(request: HttpRequest, raised: Refusal) -> HttpResponse:
    _log_refusal(request, status=raised.status, code=raised.code, detail=raised.detail)
    return errors.answer_refusal(request, raised)


@node_api.post("/enrol", auth=None, response={201: messages.Enrolled})
def enrol(request: HttpRequest) -> Status[messages.Enrolled]:
    """Join with a one-off code."""
    node = fleet.enrol(_parse_body(request, messages.Enrolment))
    enrolled = {"node_id": str(node.pk), "health": node.health, "fingerprint": node.fingerprint}
    return Status(201, messages.Enrolled.model_validate(enrolled))


@node_api.post("/secret", auth=None, response=messages.SecretGrant)
def secret(request: HttpRequest) -> messages.SecretGrant:
    """Grant a new secret to a node that proves its key."""
    return fleet.grant_secret(_parse_body(request, messages.SecretRequest))


@node_api.post("/hello", response=messages.Welcome)
def hello(request: HttpRequest) -> messages.Welcome:
    """Take in what the node is and can do. Its open long poll continues with the queues that follow from that."""
    node = _node(request)
    queues, doing = node.queues, node.doing
    host = request.headers.get(messages.HOST_HEADER, "")
    message = _parse_body(request, messages.Hello)
    welcome = fleet.record_hello(node=node, hello=message, host=host, understands=_read_abilities(request))
    if node.doing != doing:
        services.touch_waiting_runs(node)
    if node.queues != queues:
        broker.notify_gateways(name_node_queue(str(node.pk)))
    return welcome


@node_api.get("/standing", response=messages.Welcome)
def standing(request: HttpRequest) -> messages.Welcome:
    """Answer what a hello would answer now, and change nothing."""
    node = _node(request)
    return fleet.make_welcome(node, contract_version=node.contract_version if node.seen_at else CONTRACT_VERSION)


@node_api.post("/blocks/{block}/claim", response=Lease)
def claim(request: HttpRequest, block: str) -> Lease:
    """Claim a block: answers its lease."""
    message = _parse_body(request, messages.ClaimRequest)
    return services.claim_block(
        node=_node(request), block_id=block, attempt=message.attempt, understands=_read_abilities(request)
    )


@node_api.post("/blocks/{block}/heartbeat", response=messages.HeartbeatReply)
def heartbeat(request: HttpRequest, block: str) -> messages.HeartbeatReply:
    """Keep the lease of a block."""
    beat = _parse_body(request, messages.HeartbeatRequest)
    return services.heartbeat(
        node=_node(request), block_id=block, attempt=beat.attempt, token=_token(request), doing=beat.doing
    )


@node_api.post("/blocks/{block}/reports", response=Reply)
def report(request: HttpRequest, block: str) -> Reply:
    """Take in a report about a block, and answer whether to go on."""
    post = _parse_body(request, messages.ReportPost, max_bytes=messages.MAX_REPORT_BYTES)
    return services.accept_report(
        node=_node(request), block_id=block, attempt=post.attempt, token=_token(request), report=post.report
    )


@node_api.put("/blocks/{block}/traces/{int:arm}/{int:trace_round}", response=messages.TraceStored)
def put_trace(request: HttpRequest, block: str, arm: int, trace_round: int, attempt: int) -> messages.TraceStored:
    """Store a raw trace: the body is one gzip file of a Chrome trace."""
    sha256 = services.accept_trace(
        node=_node(request),
        block_id=block,
        attempt=attempt,
        token=_token(request),
        place=(arm, trace_round),
        chunks=_iterate_body(request),
    )
    return messages.TraceStored(sha256=sha256)


@node_api.put("/blocks/{block}/parts/{int:arm}", response=messages.TraceStored)
def put_part(request: HttpRequest, block: str, arm: int, attempt: int) -> messages.TraceStored:
    """Store the part of a model that shows a difference: the body is one zip."""
    sha256 = services.accept_part(
        node=_node(request),
        block_id=block,
        attempt=attempt,
        token=_token(request),
        arm=arm,
        chunks=_iterate_body(request),
    )
    return messages.TraceStored(sha256=sha256)


@node_api.put("/blocks/{block}/compiled/{int:arm}", response=messages.TraceStored)
def put_compiled(request: HttpRequest, block: str, arm: int, attempt: int) -> messages.TraceStored:
    """Store what a provider compiled of an arm's model: the body is the .onnx, which the farm does not read."""
    sha256 = services.accept_compiled(
        node=_node(request),
        block_id=block,
        attempt=attempt,
        token=_token(request),
        arm=arm,
        chunks=_iterate_body(request),
    )
    return messages.TraceStored(sha256=sha256)


@node_api.get("/files/{sha256}")
def file(request: HttpRequest, sha256: str) -> StoredFile:
    """Answer a file of the block that this node holds. Raises Conflict where its attempt is over."""
    claim = services.find_claim_by_token(node=_node(request), token=_token(request))
    claim.require_current()
    path = selectors.find_leased_file(claim.block, sha256[:SHA256_LENGTH])
    return StoredFile(path.open("rb"), content_type="application/octet-stream")


def _log_refusal(request: HttpRequest, *, status: int, code: str, detail: str) -> None:
    """Write a refusal to the audit log, with the endpoint's name, as the sender may write anything in the address."""
    names = [endpoint.name for endpoint in find_endpoints(request.path)]
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    fleet.log_refusal(
        node=getattr(request, "node", None),
        secret=bearer,
        address=names[0] if names else "",
        status=status,
        code=code,
        detail=detail,
    )


def _node(request: HttpRequest) -> Node:
    return cast(NodeRequest, request).node


def _token(request: HttpRequest) -> str:
    return request.headers.get(messages.ATTEMPT_TOKEN_HEADER, "")


def _read_abilities(request: HttpRequest) -> frozenset[str]:
    words = request.headers.get(messages.UNDERSTANDS_HEADER, "").split(",")
    return frozenset(word.strip() for word in words)


def _parse_body(request: HttpRequest, message: type[Message], *, max_bytes: int = SMALL_BYTES) -> Message:
    """Parse the body as a message. Raises TooLarge, before reading where a length is given, and Unprocessable."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise TooLarge(f"The body has {length} bytes; at most {max_bytes:,} are taken here.")
    if len(request.body) > max_bytes:
        raise TooLarge(f"The body has {len(request.body)} bytes; at most {max_bytes:,} are taken here.")
    try:
        return message.model_validate_json(replace_controls_in_json(request.body))
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Unprocessable(
            f"{message.__name__}.{where}: {strip_pydantic_prefix(first['msg'])}.", code="invalid"
        ) from problem


def _iterate_body(request: HttpRequest) -> Iterator[bytes]:
    while chunk := request.read(TRACE_CHUNK):
        yield chunk
