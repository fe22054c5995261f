"""Requests and answers of the node API, `/api/node/v1/…`; addresses, headers and limits of it.

| request | body | answer |
|---|---|---|
| POST enrol | Enrolment | 201 Enrolled; 403 used, late or unknown code |
| POST secret | SecretRequest | SecretGrant once active; 403 while pending or retired, or for a wrong signature |
| POST hello | Hello | Welcome; 401 unknown, expired or revoked secret |
| GET messages?wait=25 | – | 200 Offer, 204 nothing within `wait` seconds; 401 stops the agent |
| POST blocks/{block}/claim | ClaimRequest | Lease; 409 somebody else's, ended, or another attempt |
| POST blocks/{block}/heartbeat | HeartbeatRequest | HeartbeatReply; 409 kill the runner |
| POST blocks/{block}/reports | ReportPost | Reply; 409 stale, 413 over MAX_REPORT_BYTES, 422 implausible |
| PUT blocks/{block}/traces/{arm}/{trace_round}?attempt=N | gzip of a Chrome trace | TraceStored; 409, 413, 422 |
| PUT blocks/{block}/parts/{arm}?attempt=N | zip of a part of a model | TraceStored; 409, 413, 422 |
| GET files/{sha256} | – | the bytes; 404 unless a file of a block leased to this node |
| GET runtimes/{version} | – | WebRuntime: what a browser loads of onnxruntime-web; 404 none, 409 not to be had |
| GET runtime-files/{sha256} | – | the bytes; 404 unless a file of such a runtime |
| GET tab/{name} | – | the page that makes a browser a node, `index.html`, and its modules; no secret |

A claim and a hello carry `X-Understands`: what the node may be asked beyond what every node of this contract's version
can. A hello may carry `X-Host`: nodes of one owner that say the same share a machine and measure in turn.
Every request but `enrol` and `secret` carries `Authorization: Bearer ofn_…` (the node's secret); heartbeat, reports,
traces and files also carry `X-Attempt-Token` with the token of the lease. Every refusal is a Problem.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from farm.contract.base import Message, Sha256
from farm.contract.cells import FileRef, Loads, Runtime
from farm.contract.numbers import AttemptNumber, ContractVersion, UnixSeconds
from farm.contract.reports import Facts, Report

ATTEMPT_TOKEN_HEADER = "X-Attempt-Token"
# a header of claims and hellos: the words below that this node understands, separated by commas; others are ignored
UNDERSTANDS_HEADER = "X-Understands"
TRACED_ROUNDS = "traced-rounds"
# a header of hellos: nodes that share a machine, and measure in turn, send the same value
HOST_HEADER = "X-Host"
HOST = r"^[0-9a-f]{16}$"
# a workload with a scenario
SCENARIOS = "scenarios"
# an arm that names a file of prompts
PROMPTS = "prompts"
# a cell whose weights have 4 bits
INT4 = "int4"
# arms of several models in one block, whose outputs are paired by name, then by order
MODELS = "models"
# a cell that names the call that is timed
CALLS = "calls"
# a welcome that names a provider to try
TRIALS = "trials"
# labelled data judged by a metric that was added later
ACCURACIES = "accuracies"
# an arm with a runtime from an index that an admin of the farm added
INDEXES = "indexes"
# a header of the 404 at the address of the pages, with the address for nodes, and the code of that refusal
GATEWAY_HEADER = "X-Gateway"
ELSEWHERE = "elsewhere"
MAX_REPORT_BYTES = 1_000_000
# limits of a trace, gzipped and unpacked
MAX_TRACE_BYTES = 32 * 1024 * 1024
MAX_TRACE_UNPACKED_BYTES = 512 * 1024 * 1024
# limit of a zipped part of a model that shows a difference
MAX_PART_BYTES = 32 * 1024 * 1024
# limit of a model that a provider compiled
MAX_COMPILED_BYTES = 64 * 1024 * 1024
# the farm's clock and a node's clock may differ by this much in a signed request
SIGNATURE_WINDOW_S = 300
MAX_WAIT_S = 30

# from and to, on a clock of 24 hours
HOURS = r"^$|^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$"

# a name is not only digits, because `node:3` in a matrix means the node with that number
NODE_NAME = r"^(?:[0-9]*[A-Za-z]|[0-9]+[ ._-])[A-Za-z0-9 ._-]*$"
NodeName = Annotated[str, StringConstraints(pattern=NODE_NAME, max_length=64)]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
RuntimeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}==[0-9][0-9A-Za-z.+-]{0,31}$")]
Evidence = Annotated[str, StringConstraints(max_length=1000)]
Health = Literal["pending", "active", "draining", "quarantined", "retired"]


class SelfTest(Message):
    """The result of a node's self-test with the golden model: whether it is right, and how long it takes.

    `max_abs`: largest difference to what numpy computes in float64; `p50_ms`: the least median of its launches.
    """

    passed: bool
    sentence: Annotated[str, StringConstraints(max_length=1000)]
    runtime: Annotated[str, StringConstraints(max_length=100)] = ""
    max_abs: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    p50_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    launches: Annotated[int, Field(ge=0, le=100)] = 0


class Enrolment(Message):
    """A machine asks to join with a one-off code. `public_key`: base64 of the 32 bytes of an Ed25519 key.

    `self_test`: its first, so that whoever approves it sees what it does.
    """

    code: Annotated[str, StringConstraints(min_length=8, max_length=128)]
    name: NodeName
    public_key: Annotated[str, StringConstraints(min_length=44, max_length=44)]
    facts: Facts
    contract_version: ContractVersion
    self_test: SelfTest | None = None


class Enrolled(Message):
    """The node exists. `pending`: a person approves it, by the fingerprint, before it gets a secret."""

    node_id: str
    health: Health
    fingerprint: str


class SecretRequest(Message):
    """Proof of the private key: `signature` is base64 of Ed25519 over `make_secret_message(node_id, signed_at)`.

    `signed_at` is Unix seconds by the node's clock; older or newer than SIGNATURE_WINDOW_S is refused.
    """

    node_id: str
    signed_at: UnixSeconds
    signature: Annotated[str, StringConstraints(min_length=88, max_length=88)]


def make_secret_message(node_id: str, signed_at: int) -> bytes:
    return f"onnxfarm node secret\n{node_id}\n{signed_at}".encode()


class SecretGrant(Message):
    """A node's bearer secret. Ask for the next one at `rotate_at`; the old one works a few minutes longer."""

    secret: str
    expires_at: datetime
    rotate_at: datetime


# what a node does now, or waits for, in words
MAX_DOING = 300
Doing = Annotated[str, Field(max_length=MAX_DOING)]


class Trial(Message):
    """A provider that the node's owner lets it try, by its short name."""

    id: str
    provider: Annotated[str, StringConstraints(max_length=64)]


class Tried(Message):
    """What came of a trial: `problem` says why the provider did not execute; empty where it did."""

    id: Annotated[str, StringConstraints(max_length=20)]
    problem: Annotated[str, StringConstraints(max_length=1000)] = ""


class Hello(Message):
    """A node says what it is and can do, at start, every few minutes, and when something changes.

    `tags`: each with its evidence in words, e.g. {"cpu": "probe trace: 3 nodes on CPUExecutionProvider"}.
    `providers`: ORT's names, proven by a probe. `loads`: what its runtimes were seen to load. `block`: what it measures
    now. `leaving`: it stops on purpose.
    """

    contract_version: ContractVersion
    facts: Facts
    tags: dict[Tag, Evidence] = Field(default_factory=dict, max_length=64)
    providers: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    runtimes: Annotated[tuple[Runtime, ...], Field(max_length=256)] = ()
    loads: Annotated[dict[RuntimeName, Loads], Field(max_length=256)] = Field(default_factory=dict)
    state: Literal["idle", "measuring", "leaving"] = "idle"
    block: str | None = None
    log_tail: Annotated[str, Field(max_length=20_000)] = ""
    self_test: SelfTest | None = None
    doing: Doing = ""
    tried: Tried | None = Field(default=None, exclude_if=lambda tried: tried is None)


class NodeSettings(Message):
    """What the owner set for a node, and the farm's pace.

    `hours`: when it works, like 20:00-06:00 in `timezone`; empty: always. `max_temperature_c`: above it the node asks
    for no block; None: whatever the heat.
    """

    wait_s: Annotated[float, Field(gt=0, le=MAX_WAIT_S)] = 25.0
    hello_every_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    is_paused: bool = False
    hours: Annotated[str, StringConstraints(pattern=HOURS)] = ""
    timezone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")] = "UTC"
    max_block_s: Annotated[float, Field(ge=30, le=86_400)] = 1800.0
    max_temperature_c: Annotated[float, Field(ge=30, le=120)] | None = None
    cache_bytes: Annotated[int, Field(ge=1024**3, le=2**50)] = 20 * 1024**3
    runtimes_bytes: Annotated[int, Field(ge=1024**3, le=2**50)] = 20 * 1024**3


class Welcome(Message):
    """The farm's answer to a hello. `queues`: what to consume; none while the node may take no block.

    `trial`: only where the node said that it understands them.
    """

    health: Health
    queues: tuple[str, ...] = ()
    settings: NodeSettings = NodeSettings()
    sentence: str = ""
    trial: Trial | None = Field(default=None, exclude_if=lambda trial: trial is None)


class Offer(Message):
    """One message of one of the node's queues, as kombu wrote it. Its body's kwargs are {block, attempt}."""

    queue: str
    message: dict[str, object]


class ClaimRequest(Message):
    """A node asks for a block that a message told it about. The same node may ask again for what it holds."""

    attempt: AttemptNumber


class HeartbeatRequest(Message):
    """A node is still measuring. Sent every quarter of the lease, and sooner when it does something else."""

    attempt: AttemptNumber
    doing: Doing = ""


class HeartbeatReply(Message):
    """The lease now lasts `lease_s` seconds from here."""

    lease_s: float


class ReportPost(Message):
    """One report of the current attempt."""

    attempt: AttemptNumber
    report: Report


class TraceStored(Message):
    """A raw trace was kept: the digest of its gzip bytes."""

    sha256: Sha256


class WebRuntime(Message):
    """A release of ONNX Runtime Web as the farm keeps it for browsers. Not ready: it is being fetched; ask again."""

    version: str
    is_ready: bool
    files: tuple[FileRef, ...] = ()


class Problem(Message):
    """A refusal: one sentence, a code for programs, what to do next where that is known."""

    detail: str
    code: str
    hint: str | None = None
