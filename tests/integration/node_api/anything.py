"""Requests of the node API that are valid but for what was spoilt in them, and the farm that they are sent to."""

import base64
import gzip
import io
import json
import time
import zipfile
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.test import Client
from hypothesis import strategies as st

from farm.accounts.models import Team, User
from farm.contract import node as messages
from farm.contract import signatures
from farm.contract.reports import EndReport
from farm.contract.version import CONTRACT_VERSION
from farm.fleet import services as fleet
from farm.fleet.models import Node
from farm.registry import storage
from farm.runs import services as runs
from tests.integration.node_api.bodies import bodies
from tests.integration.node_api.calls import FACTS, PREFIX, NodeClient
from tests.integration.node_api.spoiling import TEXTS, Raw, spoiled, written
from tests.integration.runs.making import first_block, make_run, make_version
from tests.unit.rules.making import make_check, make_facts, make_operator, make_round, make_trace

CHROME = gzip.compress(b'[{"cat": "Node", "name": "MatMul_kernel_time", "dur": 12}]', mtime=0)
IDS = (*TEXTS[:16], *("999999", "9" * 30, str(2**63), "0x1", "1.0", "+1", " 1", "1/..", "%2e%2e", "x" * 3000))
HEADERS = ("", "ofa_" + "f" * 64, "ofn_" + "f" * 64, "\xff", "x" * 20_000, "' OR 1=1 --", "null", "Bearer")

PLACES = ("enrol", "secret", "hello", "claim", "heartbeat", "reports", "traces", "parts", "files")


@dataclass(frozen=True)
class Request:
    """One request: `body` is made JSON, or sent as it is where it is bytes."""

    place: str
    method: str
    address: str
    body: Any
    secret: str
    token: str

    def __repr__(self) -> str:
        return f"{self.method} {self.address[:200]} {_shown(self.body)}"


def _shown(body: Any) -> str:
    content = repr(body)
    return content if len(content) < 1500 else f"{content[:1000]} … {content[-300:]}"


class Farm:
    """A node that measures a block, others that wait, are not approved or left, and what each of them knows."""

    def __init__(self, *, team: Team, owner: User, member: User, stranger: User) -> None:
        self.machine = self._joined(team, owner, "bench-1")
        self.block = first_block(make_run(make_version(team), member))
        self.token = str(self.machine.post(f"blocks/{self.block.pk}/claim", {"attempt": 1}).json()["token"])
        self._store(team)
        self.other = self._joined(team, owner, "bench-2")
        self.gone = self._joined(team, owner, "bench-3")
        fleet.revoke(node=Node.objects.get(name="bench-3"), by=owner, reason="sold")
        self.waiting = NodeClient("bench-4")
        self.waiting.enrol(fleet.invite(team=team, by=owner)[1])
        elsewhere = stranger.memberships.get().team
        self.theirs = self._joined(elsewhere, stranger, "theirs")
        other_block = first_block(make_run(make_version(elsewhere), stranger))
        self.ended = self._ended(team, member)
        self.code = fleet.invite(team=team, by=owner, life=timedelta(hours=1))[1]
        self.blocks = [str(one) for one in (self.block.pk, other_block.pk, self.ended, self.block.run.pk)]
        self.files = [one.blob.sha256 for one in self.block.run.version.artifact.files.all()] + ["0" * 64]
        self.pair = signatures.make_private_key()
        self._client = Client(raise_request_exception=False)
        self._reader = Client(raise_request_exception=False)
        self._reader.force_login(owner)

    def _joined(self, team: Team, by: User, name: str) -> NodeClient:
        machine = NodeClient(name)
        machine.enrol(fleet.invite(team=team, by=by, auto_approve=True)[1])
        machine.ask_for_secret()
        machine.hello()
        return machine

    def _ended(self, team: Team, by: User) -> object:
        """A block of the past."""
        run = make_run(make_version(team, name="measured"), by)
        runs.cancel_run(run=run, by=by)
        return first_block(run).pk

    def _store(self, team: Team) -> None:
        """The file of the block, which nothing has really stored."""
        for one in self.block.run.version.artifact.files.all():
            path = storage.blob_path(team_id=team.pk, sha256=one.blob.sha256)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"onnx")

    def send(self, request: Request) -> tuple[int, str, bytes]:
        """Status, type and content of the answer."""
        sent = {"authorization": f"Bearer {request.secret}", messages.ATTEMPT_TOKEN_HEADER: request.token}
        body = request.body if isinstance(request.body, bytes) else written(request.body)
        answer = self._client.generic(
            request.method, PREFIX + request.address, body, content_type="application/json", headers=sent
        )
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        return answer.status_code, answer.headers.get("Content-Type", ""), content

    def read(self, place: str) -> list[tuple[str, int]]:
        """The addresses that show people what was told at a place, and how each is answered."""
        run = self.block.run_id
        about_block = [f"/runs/{run}/", f"/runs/{run}/cells/c1/", f"/api/v1/runs/{run}/results"]
        about_node = ["/fleet/", f"/fleet/{self.machine.node_id}/", "/api/v1/nodes"]
        shown = {
            "reports": [*about_block, f"/api/v1/runs/{run}/results.csv"],
            "hello": about_node,
            "enrol": about_node[:1],
        }
        return [(address, self._reader.get(address).status_code) for address in shown.get(place, [])]


def requests(farm: Farm) -> st.SearchStrategy[Request]:
    """Any request of the node API."""
    kinds = (
        _enrolments,
        _secrets,
        _hellos,
        _claims,
        _heartbeats,
        _reports,
        _reports,
        _reports,
        _traces,
        _parts,
        _files,
    )
    return st.sampled_from(kinds).flatmap(lambda kind: kind(farm))


@st.composite
def _sent(draw: st.DrawFn, farm: Farm, method: str, address: str, body: Any) -> Request:
    """The body, spoilt or not, from the node that may send it or from another."""
    if not isinstance(body, bytes):
        body = draw(spoiled(body, times=draw(st.sampled_from([0, 1, 1, 1, 2, 3]))))
    machines = (farm.machine,) * 8 + (farm.other, farm.gone, farm.theirs)
    secret = draw(st.sampled_from([one.secret for one in machines] + list(HEADERS)[:3]))
    token = draw(st.sampled_from([farm.token] * 12 + list(HEADERS)))
    place = next(word for word in PLACES if word in address.split("/"))
    return Request(place, method, address, body, secret, token)


@st.composite
def _enrolments(draw: st.DrawFn, farm: Farm) -> Request:
    body = draw(bodies(messages.Enrolment))
    known = {
        "code": farm.code,
        "name": "bench-5",
        "public_key": signatures.derive_public_key(farm.pair),
        "facts": FACTS,
        "contract_version": CONTRACT_VERSION,
    }
    return draw(_sent(farm, "POST", "enrol", body | _some(draw, known)))


@st.composite
def _secrets(draw: st.DrawFn, farm: Farm) -> Request:
    """Signed with the right key, whatever node and moment they name."""
    machine = draw(st.sampled_from([farm.machine, farm.other, farm.gone, farm.waiting]))
    node_id = draw(st.sampled_from([machine.node_id] * 4 + list(IDS)))
    signed_at = draw(st.sampled_from([int(time.time())] * 4 + [0, 1, 2**31, 2**38, 2**63, 253402300800]))
    try:
        signature = signatures.sign(machine.private, messages.make_secret_message(node_id, signed_at))
    except UnicodeError:
        signature = base64.b64encode(b"x" * 64).decode()
    body = {"node_id": node_id, "signed_at": signed_at, "signature": signature}
    return draw(_sent(farm, "POST", "secret", draw(st.sampled_from([body, draw(bodies(messages.SecretRequest))]))))


@st.composite
def _hellos(draw: st.DrawFn, farm: Farm) -> Request:
    known = {
        "contract_version": CONTRACT_VERSION,
        "facts": FACTS,
        "tags": {"cpu": "probe trace: 3 nodes", "x86": "x86_64"},
        "providers": ["CPUExecutionProvider"],
    }
    return draw(_sent(farm, "POST", "hello", draw(bodies(messages.Hello)) | _some(draw, known)))


@st.composite
def _claims(draw: st.DrawFn, farm: Farm) -> Request:
    return draw(_sent(farm, "POST", f"blocks/{_block(draw, farm)}/claim", _attempt(draw)))


@st.composite
def _heartbeats(draw: st.DrawFn, farm: Farm) -> Request:
    return draw(_sent(farm, "POST", f"blocks/{_block(draw, farm)}/heartbeat", _attempt(draw)))


@st.composite
def _reports(draw: st.DrawFn, farm: Farm) -> Request:
    """One as a node makes them, or one from the types alone."""
    if draw(st.booleans()):
        body = draw(bodies(messages.ReportPost))
        body["attempt"] = draw(st.sampled_from([1, 1, 1, body["attempt"]]))
    else:
        body = {"attempt": 1, "report": json.loads(draw(st.sampled_from(PLAUSIBLE)))}
    return draw(_sent(farm, "POST", f"blocks/{_block(draw, farm)}/reports", body))


PLAUSIBLE = [
    one.model_dump_json()
    for one in (
        make_facts(),
        make_check(0),
        make_check(1),
        make_round(0, {0: 1.0, 1: 1.0, 2: 1.0}),
        make_trace(0, [make_operator("a", 1.0)]),
        EndReport(wall_s=1.0),
    )
]


@st.composite
def _traces(draw: st.DrawFn, farm: Farm) -> Request:
    arm, trace_round = (draw(st.sampled_from(["0", "0", "1", *IDS])) for _ in range(2))
    address = (
        f"blocks/{_block(draw, farm)}/traces/{quote(arm, errors='replace')}/{quote(trace_round, errors='replace')}"
    )
    return draw(_sent(farm, "PUT", address + _query(draw), draw(st.sampled_from([CHROME, *_spoilt_files(CHROME)]))))


@st.composite
def _parts(draw: st.DrawFn, farm: Farm) -> Request:
    arm = quote(draw(st.sampled_from(["0", "0", "1", *IDS])), errors="replace")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("part.onnx"), b"onnx")
    whole = packed.getvalue()
    body = draw(st.sampled_from([whole, *_spoilt_files(whole)]))
    return draw(_sent(farm, "PUT", f"blocks/{_block(draw, farm)}/parts/{arm}{_query(draw)}", body))


@st.composite
def _files(draw: st.DrawFn, farm: Farm) -> Request:
    sha256 = draw(st.sampled_from(farm.files + farm.files + list(IDS)))
    return draw(_sent(farm, "GET", f"files/{quote(sha256, errors='replace')}", b""))


def _block(draw: st.DrawFn, farm: Farm) -> str:
    """The node's block mostly; else another's, or what is no block at all."""
    return quote(draw(st.sampled_from(farm.blocks[:1] * 12 + farm.blocks + list(IDS))), errors="replace")


def _attempt(draw: st.DrawFn) -> dict[str, Any]:
    return {"attempt": draw(st.sampled_from([1, 1, 2, 2**31, 2**63, Raw("9" * 5000)]))}


def _query(draw: st.DrawFn) -> str:
    known = ("?attempt=1",) * 6
    odd = (
        "",
        "?attempt=",
        "?attempt=2",
        "?attempt=" + "9" * 5000,
        "?attempt=9223372036854775808",
        "?attempt=1&attempt=x",
    )
    return draw(st.sampled_from([*known, *odd, "?attempt=%00", "?attempt=-1", "?attempt=1.5", "?attempt=true"]))


def _some(draw: st.DrawFn, known: dict[str, Any]) -> dict[str, Any]:
    """What a real node says in some places, and what the types alone allow in the others."""
    return known if draw(st.booleans()) else {key: one for key, one in known.items() if draw(st.booleans())}


def _spoilt_files(whole: bytes) -> list[bytes]:
    return [
        b"",
        b"\0",
        whole[:-4],
        whole + b"x",
        whole[::-1],
        b"\x1f\x8b" + b"\0" * 100,
        gzip.compress(b"{}" * 9, mtime=0),
    ]
