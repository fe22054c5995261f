"""Two teams with everything that an address can name, and clients for each who asks."""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from dashboard.views import watches
from farm.accounts.memberships import invite
from farm.accounts.models import Membership, Team, User
from farm.accounts.services import issue_token
from farm.accounts.states import ALL_OF_A_PERSON
from farm.alerts.models import Find
from farm.alerts.selectors.badges import badge_key
from farm.alerts.services.channels import create_channel
from farm.base.secrecy import hash_secret
from farm.contract.blocks import Lease
from farm.contract.node import ATTEMPT_TOKEN_HEADER
from farm.contract.version import CONTRACT_VERSION
from farm.fleet.farm_wheel import build_farm_wheel
from farm.fleet.models import Lending, Node, NodeSecret, Trial
from farm.registry import storage
from farm.registry.models import Blob, PlanOrder, Version
from farm.registry.services import begin_upload
from farm.runs.models import Divergence, Run
from farm.runs.services import claim_block
from farm.runs.services.share_links import share
from tests.integration.access.table import Line
from tests.integration.alerts.driving import make_watch
from tests.integration.dashboard import rows
from tests.integration.dashboard.watching import bare_alert
from tests.integration.node_api.calls import FACTS, NodeClient
from tests.integration.runs.making import first_block
from tests.responses import Response

PAIR: Final = {"matrix": {"runtime": ["1.29.0", "1.31.1"], "batch": [1]}}
PLACE: Final = re.compile(r"<(?:\w+:)?(\w+)>")
TUS: Final = {
    "Tus-Resumable": "1.0.0",
    "Upload-Length": "3",
    "Upload-Offset": "0",
    "Upload-Metadata": f"filename {base64.b64encode(b'a.onnx').decode()},team {base64.b64encode(b'vision').decode()}",
}
# what a viewer must not get: the values of the one tensor of an ONNX model with a graph of nothing else
WEIGHTS: Final = b"these are weights"
_TENSOR = b"\x10\x01J" + bytes([len(WEIGHTS)]) + WEIGHTS
MODEL: Final = b"\x08\x08:" + bytes([len(_TENSOR) + 2]) + b"*" + bytes([len(_TENSOR)]) + _TENSOR
Payload = dict[str, Any] | bytes | None


class World:
    """`names` is what a route's parameters stand for; `sign_in` the people, `secrets` the nodes."""

    def __init__(self, *, team: Team, people: dict[str, User]) -> None:
        owner, stranger = people["owner"], people["stranger"]
        self.people = people
        self._clients: dict[tuple[str, bool], Client] = {}
        self.node = rows.make_node(team, owner)
        other = rows.make_node(stranger.memberships.get().team, stranger, name="other")
        self.secrets = {"node": _secret_of(self.node), "other": _secret_of(other)}
        measured = rows.make_version(team, owner)
        self.run = rows.finished_run(measured, self.node, owner)
        self.unused = rows.make_version(team, owner, name="unused")
        open_run = rows.begin_run(rows.make_version(team, owner, name="open"), owner, matrix=PAIR)
        self.block = first_block(open_run)
        self.lease = self._claim()
        self.names: dict[str, object] = {
            "token_id": issue_token(owner)[0].pk,
            "model_id": measured.model_id,
            "version_id": self.unused.pk,
            "plan_id": self._large_plan(owner),
            "run_id": self.run.pk,
            "cell": "c1",
            "cell_id": "c1",
            "trace_id": self._trace(self.run),
            "block": self.block.pk,
            "arm": 0,
            "trace_round": 0,
            "sha256": self._stored(open_run),
            "key": begin_upload(user=owner, name="a.onnx", length=3, team=team.name).key,
            "node_id": self.node.pk,
            "version": "1.30.0",
            "distribution": "onnxruntime",
            "lending_id": self._lending(other.team),
            "trial_id": self._trial(people.get("mate", owner)),
            "team_id": team.pk,
            "username": _leaving(team).username,
            "what": "drain",
            "invitation_id": self._invitation(team, owner, stranger),
            "mapping_id": 1,
            "name": "watch",
            **self._found(team, owner, measured),
            "secret": "ofs_nobody-made-this",
        }

    def _found(self, team: Team, owner: User, measured: Version) -> dict[str, object]:
        """A watch with an alert and a question about it, a channel, a variant, a divergence, a badge."""
        self._store(measured.artifact.files.get().blob)
        self._store(self.unused.artifact.files.get().blob)
        watch = make_watch(measured, owner)
        alert = bare_alert(watch, measured)
        asked = alert.investigations.create(kind="since_when", symptom=alert.symptoms.get())
        channel = create_channel(team=team, by=owner, name="ours", kind="webhook", target="https://example.com/hook")
        arm = first_block(self.run).arms.order_by("number")[0]
        return {
            "watch_id": watch.pk,
            "alert_id": alert.pk,
            "investigation_id": asked.pk,
            "channel_id": channel.pk,
            "variant_id": arm.cell.variant_id,
            "divergence_id": Divergence.objects.create(arm=arm, asked_by=owner, part=self._part(team)).pk,
            "find_id": Find.objects.create(version=measured, question={"goal": "latency"}, state="answered").pk,
            "badge_key": badge_key(measured.model_id),
            **self._shared(owner),
        }

    def _large_plan(self, owner: User) -> int:
        order = {"asked_by": owner, "version": self.unused, "order_json": {}, "points": 600}
        return int(PlanOrder.objects.create(**order, state="ready", body=zlib.compress(b"{}")).pk)

    def _lending(self, team: Team) -> int:
        """The node, offered to the stranger's team by somebody who is in both."""
        Membership.objects.create(team=team, user=(both := User.objects.create(username="both")))
        return int(Lending.objects.create(node=self.node, team=team, asked_by=both).pk)

    def _trial(self, asked_by: User) -> int:
        """A provider that the node's owner is asked to let it try."""
        Node.objects.filter(pk=self.node.pk).update(understands_trials=True)
        asked = {"provider": "OpenVINOExecutionProvider", "asked_by": asked_by}
        return int(Trial.objects.create(node=self.node, **asked).pk)

    def _invitation(self, team: Team, owner: User, stranger: User) -> int:
        invitation = invite(team=team, name=stranger.username, by=owner).invitation
        return int(invitation.pk)

    def _shared(self, owner: User) -> dict[str, object]:
        made, url = share(kind="run", subject=str(self.run.pk), by=owner)
        return {"share_id": made.pk, "share_secret": url.rstrip("/").rsplit("/", 1)[1]}

    def _part(self, team: Team) -> Blob:
        digest = "7" * 64
        path = storage.blob_path(team_id=team.pk, sha256=digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"zip" + WEIGHTS)
        return Blob.objects.create(team=team, sha256=digest, bytes=3 + len(WEIGHTS))

    def ask(self, line: Line, *, who: str, client: Client | None = None) -> Response:
        """Sends what the address wants, as somebody."""
        names = self.names | OWN_NAMES.get(line.route, {})
        if line.route.endswith("<str:key>.svg"):
            names["key"] = names["badge_key"]
        if line.route.startswith("shared/"):
            names["secret"] = names["share_secret"]
        if line.route.endswith("graph/outline/"):
            # the other version's files go with it when it is deleted
            names["version_id"] = self.run.version_id
        route = PLACE.sub(lambda match: str(names[match[1]]), line.route)
        payload, kind = self._payload(line)
        query = self._query(line)
        asked = client or self.client(who, line.route)
        body: dict[str, Any] = {} if payload is None else {"data": payload}
        if kind and payload is not None:
            body["content_type"] = kind
        if "uploads/files" in line.route:
            body["headers"] = TUS
            body |= {"content_type": "application/offset+octet-stream"} if line.method == "PATCH" else {}
        return getattr(asked, line.method.lower())(f"/{route}{query}", **body)

    def client(self, who: str, route: str) -> Client:
        """A token for the API, a session for pages, a node's secret for both; made once."""
        kind = (who, route.startswith("api/"))
        if kind not in self._clients:
            self._clients[kind] = self._made(who, is_api=kind[1])
        return self._clients[kind]

    def _made(self, who: str, *, is_api: bool) -> Client:
        if who in self.secrets:
            token = self.lease.token
            return Client(headers={"authorization": f"Bearer {self.secrets[who]}", ATTEMPT_TOKEN_HEADER: token})
        client = Client()
        if who not in self.people:
            return client
        if not is_api:
            client.force_login(self.people[who])
            return client
        _, secret = issue_token(self.people[who], ALL_OF_A_PERSON)
        return Client(headers={"authorization": f"Bearer {secret}"})

    def _claim(self) -> Lease:
        return claim_block(node=self.node, block_id=str(self.block.pk), attempt=self.block.attempt)

    def _trace(self, run: Run) -> int:
        """A raw trace of the finished run, with its file."""
        attempt = first_block(run).attempts.get()
        digest = "5" * 64
        path = storage.blob_path(team_id=run.team_id, sha256=digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"[]"))
        run.team.blobs.create(sha256=digest, bytes=22)
        blob = run.team.blobs.get(sha256=digest)
        attempt.compiled.create(arm=0, blob=blob)
        return int(attempt.traces.create(arm=0, trace_round=0, sha256=digest, bytes=22).pk)

    def _stored(self, run: Run) -> str:
        """The digest of a file that the leased block needs."""
        blob = run.version.artifact.files.get().blob
        self._store(blob)
        return str(blob.sha256)

    def _store(self, blob: Blob) -> None:
        path = storage.blob_path(team_id=blob.team_id, sha256=blob.sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MODEL)

    def _query(self, line: Line) -> str:
        team = self.run.team.name
        queries = {
            "PUT api/v1/uploads": f"?file=raw.onnx&team={team}",
            "PUT api/node/v1/blocks/<block>/traces/<int:arm>/<int:trace_round>": "?attempt=1",
            "PUT api/node/v1/blocks/<block>/parts/<int:arm>": "?attempt=1",
            "PUT api/node/v1/blocks/<block>/compiled/<int:arm>": "?attempt=1",
            "GET runs/new/": f"?version={self.unused.pk}",
        }
        return queries.get(f"{line.method} {line.route}", "")

    def _payload(self, line: Line) -> tuple[Payload, str]:
        """What the address wants to be sent, and as what."""
        make = PAYLOADS.get(f"{line.method} {line.route}")
        if make is None:
            return None, ""
        payload = make(self)
        if isinstance(payload, bytes):
            return payload, "application/octet-stream"
        if line.route.startswith("api/") and not any(
            isinstance(value, SimpleUploadedFile) for value in payload.values()
        ):
            return json.dumps(payload).encode(), "application/json"
        return payload, ""


# names that mean something else in some routes
OWN_NAMES: Final[dict[str, dict[str, object]]] = {
    "alerts/<int:alert_id>/<str:what>/": {"what": "note"},
    "settings/teams/<int:team_id>/<str:username>/<str:what>/": {"what": "remove"},
    "watches/<int:watch_id>/<str:what>/": {"what": "pause"},
    "settings/channels/<int:channel_id>/<str:what>/": {"what": "listen"},
    "api/v1/lendings/<int:lending_id>/<what>": {"what": "agree"},
    "api/v1/invitations/<int:invitation_id>/<what>": {"what": "accept"},
    "settings/invitations/<int:invitation_id>/<str:what>/": {"what": "accept"},
    "fleet/lendings/<int:lending_id>/<str:what>/": {"what": "agree"},
    "api/v1/trials/<int:trial_id>/<what>": {"what": "allow"},
    "fleet/trials/<int:trial_id>/<str:what>/": {"what": "allow"},
    "graph/netron/<str:name>": {"name": "view.js"},
    "install/<str:name>": {"name": build_farm_wheel().name},
    "api/node/v1/tab/<name>": {"name": "index.html"},
    # whoever may see the files hears that there is none of that name
    "api/v1/versions/<int:version_id>/files/<name>": {"name": "none.onnx"},
}


def _leaving(team: Team) -> User:
    """A member who does not mind what becomes of them."""
    user = User.objects.create(username="leaving")
    Membership.objects.create(team=team, user=user)
    return user


def _secret_of(node: Node) -> str:
    secret = f"ofn_secret-of-{node.name}"
    later = timezone.now() + timedelta(days=1)
    NodeSecret.objects.create(node=node, hint="ofn_", digest=hash_secret(secret), expires_at=later)
    return secret


def _file() -> SimpleUploadedFile:
    return SimpleUploadedFile("new.onnx", b"not looked at here")


def _labelled() -> SimpleUploadedFile:
    return SimpleUploadedFile("evaluation.npz", b"not looked at here")


def _watch(world: World) -> dict[str, Any]:
    model = world.run.version.model
    return {"name": "another", "reference": "1.29.0", "models": [model.pk], "team": model.team.name}


def _watch_form(world: World, name: str) -> dict[str, Any]:
    team, model = world.run.team.name, str(world.run.version.model_id)
    fields: dict[str, Any] = dict(watches.empty_form())
    return {**fields, **fields.pop("limits"), "name": name, "reference": "1.29.0", "team": team, "models": [model]}


def _channel(world: World) -> dict[str, Any]:
    team = world.run.team.name
    return {"name": "another", "kind": "webhook", "target": "https://example.com/hook", "team": team, "digest": "never"}


def _enrolment(world: World) -> dict[str, Any]:
    from farm.contract import signatures

    key = signatures.derive_public_key(NodeClient().private)
    code = "ofe_nobody-made-this"
    return {"code": code, "name": "x", "public_key": key, "facts": FACTS, "contract_version": CONTRACT_VERSION}


# what each address that takes a body is sent; addresses without an entry are sent none
PAYLOADS: Final[dict[str, Callable[[World], dict[str, Any] | bytes]]] = {
    "POST api/v1/tokens": lambda world: {"name": "ci", "scopes": ["read"]},
    "POST api/v1/teams": lambda world: {"name": "another"},
    "POST api/v1/teams/<int:team_id>/members": lambda world: {"username": "newcomer"},
    "PATCH api/v1/teams/<int:team_id>/members/<username>": lambda world: {"role": "viewer"},
    "PUT api/v1/teams/<int:team_id>/retention": lambda world: {"timings_days": 30},
    "PATCH api/v1/teams/<int:team_id>": lambda world: {"daily_minutes": 600},
    "POST api/v1/indexes": lambda world: {"name": "nightly", "url": "https://feed.example/simple/"},
    "POST settings/indexes/": lambda world: {"name": "nightly", "url": "https://feed.example/simple/"},
    "POST settings/teams/": lambda world: {"name": "another"},
    "POST settings/teams/<int:team_id>/": lambda world: {"username": "newcomer", "role": "member"},
    "PATCH api/v1/models/<int:model_id>": lambda world: {"description": "seen"},
    "PATCH api/v1/versions/<int:version_id>": lambda world: {"note": "seen"},
    "POST models/<int:model_id>/edit/": lambda world: {"name": "encoder"},
    "POST models/versions/<int:version_id>/note/": lambda world: {"note": "seen"},
    "POST api/v1/uploads": lambda world: {"files": _file(), "team": world.run.team.name},
    "PUT api/v1/uploads": lambda world: b"not looked at here",
    "PATCH api/v1/uploads/files/<key>": lambda world: b"abc",
    "POST api/v1/uploads/complete": lambda world: {"files": [{"upload": "nobody-began-this"}]},
    "POST api/v1/plan": lambda world: {"version": world.unused.pk, "matrix": PAIR},
    "POST api/v1/runs": lambda world: {"version": world.unused.pk, "matrix": PAIR},
    "POST api/v1/runs/<int:run_id>/more": lambda world: {"rounds": 4, "blocks": [1]},
    "POST api/v1/versions/<int:version_id>/evaluation": lambda world: {"evaluation": _labelled()},
    "POST api/v1/runs/<int:run_id>/cells/<str:cell>/divergences": lambda world: {},
    "POST api/v1/sweeps": lambda world: {"version": world.unused.pk, "ort": "1.29.0,1.31.1"},
    "POST api/v1/finds": lambda world: {"version": world.unused.pk, "space": {"threads": [1, 2]}},
    "POST api/v1/watches": lambda world: _watch(world),
    "PATCH api/v1/watches/<int:watch_id>": lambda world: {"on_version": False},
    "POST api/v1/watches/<int:watch_id>/call": lambda world: {"candidate": "1.31.1"},
    "POST api/v1/alerts/<int:alert_id>/acknowledge": lambda world: {"note": "seen"},
    "POST api/v1/alerts/<int:alert_id>/assign": lambda world: {"assignee": "owner"},
    "POST api/v1/alerts/<int:alert_id>/snooze": lambda world: {"until": "2099-01-01T00:00:00Z"},
    "POST api/v1/alerts/<int:alert_id>/invalid": lambda world: {"reason": "noise"},
    "POST api/v1/alerts/<int:alert_id>/infra": lambda world: {"reason": "the machine"},
    "POST api/v1/alerts/<int:alert_id>/reopen": lambda world: {"note": "again"},
    "POST api/v1/alerts/<int:alert_id>/notes": lambda world: {"note": "seen"},
    "POST api/v1/alerts/<int:alert_id>/bisections": lambda world: {},
    "POST api/v1/alerts/<int:alert_id>/work-arounds": lambda world: {},
    "POST api/v1/channels": lambda world: _channel(world),
    "PATCH api/v1/channels/<int:channel_id>": lambda world: {"is_active": False},
    "POST alerts/<int:alert_id>/<str:what>/": lambda world: {"note": "seen"},
    "POST models/versions/<int:version_id>/evaluation/": lambda world: {"evaluation": _labelled()},
    "POST watches/new/": lambda world: _watch_form(world, "another"),
    "POST watches/<int:watch_id>/edit/": lambda world: _watch_form(world, "upgrades"),
    "POST settings/channels/": lambda world: _channel(world),
    "PUT api/node/v1/blocks/<block>/parts/<int:arm>": lambda world: b"zip",
    "PUT api/node/v1/blocks/<block>/compiled/<int:arm>": lambda world: b"model",
    "POST api/v1/nodes/invitations": lambda world: {"team": world.run.team.name},
    "POST api/v1/nodes/<int:node_id>/trials": lambda world: {"provider": "cuda"},
    "POST fleet/<int:node_id>/trials/": lambda world: {"provider": "cuda"},
    "PATCH api/v1/nodes/<int:node_id>": lambda world: {"hours": "20:00-06:00"},
    "POST api/node/v1/enrol": _enrolment,
    "POST api/node/v1/secret": lambda world: {"node_id": str(world.node.pk), "signed_at": 1, "signature": "A" * 88},
    "POST api/node/v1/hello": lambda world: {"contract_version": CONTRACT_VERSION, "facts": FACTS},
    "POST api/node/v1/blocks/<block>/claim": lambda world: {"attempt": 1},
    "POST api/node/v1/blocks/<block>/heartbeat": lambda world: {"attempt": 1},
    "POST api/node/v1/blocks/<block>/reports": lambda world: {
        "attempt": 1,
        "report": {"kind": "facts", "facts": FACTS},
    },
    "PUT api/node/v1/blocks/<block>/traces/<int:arm>/<int:trace_round>": lambda world: gzip.compress(b"[]"),
    "POST models/upload/": lambda world: {"files": _file(), "team": world.run.team.name},
    "POST runs/new/": lambda world: {"version": world.unused.pk, "matrix": json.dumps(PAIR), "seed": "0"},
    "POST runs/plan/": lambda world: {"version": world.unused.pk, "matrix": json.dumps(PAIR)},
    "POST runs/<int:run_id>/more/": lambda world: {"rounds": "4"},
    "POST fleet/<int:node_id>/settings/": lambda world: {"minutes": "30", "cache": "20", "runtimes": "20"},
    "POST api/v1/shares": lambda world: {"kind": "run", "subject": str(world.run.pk), "days": 7},
    "POST settings/shares/": lambda world: {"kind": "run", "subject": str(world.run.pk), "days": "7"},
    "POST settings/tokens/": lambda world: {"name": "ci", "scopes": ["read"]},
}
