"""The named list of what a broken or lying node may send: refused, in the audit log, nothing changed."""

import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from farm.accounts.models import AuditEvent, Team, User
from farm.contract import signatures
from farm.contract.node import MAX_REPORT_BYTES
from farm.contract.reports import EndReport
from farm.fleet import services as fleet
from farm.fleet.models import EnrolmentCode, Node
from farm.fleet.services.enrolment import STRANGER
from farm.runs.models import Block
from farm.runs.states import BlockState
from tests.integration.node_api.calls import FACTS, NodeClient
from tests.integration.runs.making import first_block, make_run, make_version
from tests.responses import Response
from tests.unit.rules.making import make_check, make_round, make_sample

pytestmark = pytest.mark.django_db
LOGS = {"AuditEvent", "NodeEvent", "Event"}


class Case:
    """A node that measures a block, another node, and what each bad input needs of them."""

    def __init__(self, team: Team, owner: User, member: User) -> None:
        self.team, self.owner = team, owner
        self.node = self.joined("bench-1")
        self.block = first_block(make_run(make_version(team), member))
        answer = self.node.post(f"blocks/{self.block.pk}/claim", {"attempt": 1})
        self.token = answer.json()["token"]
        # joined after the claim, so that the block is the first node's
        self.other = self.joined("bench-2")

    def joined(self, name: str) -> NodeClient:
        machine = NodeClient(name)
        machine.enrol(fleet.invite(team=self.team, by=self.owner, auto_approve=True)[1])
        machine.ask_for_secret()
        machine.hello()
        return machine

    def report(
        self, report: Any, *, by: NodeClient | None = None, token: str | None = None, attempt: int = 1
    ) -> Response:
        known = report if isinstance(report, str) else report.model_dump_json()
        body = f'{{"attempt": {attempt}, "report": {known}}}'
        sent = self.token if token is None else token
        return (by or self.node).post(f"blocks/{self.block.pk}/reports", body, token=sent)

    def sample(self, **changes: Any) -> Response:
        """A first round whose baseline says something that cannot be."""
        sample = make_sample(1.0).model_copy(update=changes)
        return self.report(make_round(0, {0: sample, 1: 1.0, 2: 1.0}))

    def trace(self, place: str, body: bytes) -> Response:
        return self.node.put(f"blocks/{self.block.pk}/traces/{place}?attempt=1", body, token=self.token)

    def revoked(self) -> Response:
        Node.objects.get(name="bench-2").secrets.update(revoked_at=timezone.now())
        return self.other.hello()

    def late_code(self) -> Response:
        code = fleet.invite(team=self.team, by=self.owner)[1]
        EnrolmentCode.objects.filter(used_at=None).update(expires_at=timezone.now() - timedelta(seconds=1))
        return NodeClient("late").enrol(code)

    def used_code(self) -> Response:
        code = fleet.invite(team=self.team, by=self.owner)[1]
        NodeClient("first").enrol(code)
        return NodeClient("second").enrol(code)

    def ended(self) -> None:
        self.report(EndReport())


def _nan_sample(case: Case) -> Response:
    report = json.loads(make_round(0, {0: 1.0}).model_dump_json())
    report["samples"][0]["sample"]["p50_ms"] = float("nan")
    return case.report(json.dumps(report))


def _replayed(case: Case) -> Response:
    """A report of the attempt before, word for word, once the block was given out again."""
    block = Block.objects.select_related("run").get(pk=case.block.pk)
    block.queue(came_from=BlockState.LEASED)
    return case.report(make_check(0))


def _contradicting(case: Case) -> Response:
    case.report(make_check(0))
    return case.report(make_check(0, first_ms=99.0))


def _after_the_end(case: Case) -> Response:
    case.ended()
    return case.report(make_check(0))


Sent = Callable[[Case], Response]
# name: what is sent, the status, who stands in the audit log and the code there; () where routine is not noted
BAD: dict[str, tuple[Sent, int, tuple[str, str, str] | tuple[()]]] = {
    "a forged attempt token": (
        lambda case: case.report(make_check(0), token="ofa_" + "f" * 64), 403, ("node refused", "bench-1", "bad_token"),
    ),
    "no attempt token": (
        lambda case: case.report(make_check(0), token=""), 403, ("node refused", "bench-1", "bad_token"),
    ),
    "another node with the right token": (
        lambda case: case.report(make_check(0), by=case.other), 409, ("node refused", "bench-2", "stale"),
    ),
    "a replayed report of an earlier attempt": (_replayed, 409, ("node refused", "bench-1", "stale")),
    "a report after the end": (_after_the_end, 409, ("node refused", "bench-1", "stale")),
    "another report in the place of the first": (_contradicting, 409, ("node refused", "bench-1", "contradiction")),
    "a report of an attempt to come": (
        lambda case: case.report(make_check(0), attempt=2), 409, ("node refused", "bench-1", "stale"),
    ),
    "a report over the limit": (
        lambda case: case.report(make_check(0).model_dump_json() + " " * MAX_REPORT_BYTES),
        413, ("node refused", "bench-1", "too_large"),
    ),
    "a report of no known kind": (
        lambda case: case.report('{"kind": "gossip"}'), 422, ("node refused", "bench-1", "invalid"),
    ),
    "a latency that is no number": (_nan_sample, 422, ("node refused", "bench-1", "invalid")),
    "a p50 above p99": (lambda case: case.sample(p50_ms=9.0), 422, ("node refused", "bench-1", "implausible")),
    "a p50 that its timings do not have": (
        lambda case: case.sample(p50_ms=0.5, min_ms=0.5), 422, ("node refused", "bench-1", "implausible"),
    ),
    "more inference than the wall clock has": (
        lambda case: case.report(make_round(0, {0: make_sample(1000.0, n=600)})),
        422, ("node refused", "bench-1", "implausible"),
    ),
    "a cell of another block": (
        lambda case: case.report(make_check(3)), 422, ("node refused", "bench-1", "implausible"),
    ),
    "a round that is not due": (
        lambda case: case.report(make_round(5, {0: 1.0})), 422, ("node refused", "bench-1", "implausible"),
    ),
    "a trace of an arm that is not there": (
        lambda case: case.trace("9/0", gzip.compress(b"[]")), 422, ("node refused", "bench-1", "implausible"),
    ),
    "what is no trace": (
        lambda case: case.trace("0/0", b"no gzip"), 422, ("node refused", "bench-1", "bad_trace"),
    ),
    "a file of another block": (
        lambda case: case.node.get("files/" + "0" * 64, token=case.token),
        404, ("node refused", "bench-1", "not_found"),
    ),
    "a block that another node measures": (
        lambda case: case.other.post(f"blocks/{case.block.pk}/claim", {"attempt": 1}), 409, (),
    ),
    "a revoked secret": (Case.revoked, 401, ("node refused", "bench-2", "unknown_node")),
    "a secret that nobody was given": (
        lambda case: NodeClient("x").hello(), 401, ("node refused", STRANGER, "unknown_node"),
    ),
    "a signature of another key": (
        lambda case: case.other.ask_for_secret(private=signatures.make_private_key()),
        403, ("node refused", "bench-2", "bad_signature"),
    ),
    "an enrolment code used twice": (Case.used_code, 403, ("enrolment refused", "second", "bad_code")),
    "an enrolment code that comes late": (Case.late_code, 403, ("enrolment refused", "late", "bad_code")),
    "a tag that the facts deny": (
        lambda case: case.other.hello(tags={"arm": "trust me"}), 422, ("node refused", "bench-2", "false_tag"),
    ),
    "a tag without evidence": (
        lambda case: case.other.hello(tags={"garage": " "}), 422, ("node refused", "bench-2", "false_tag"),
    ),
    "a provider's tag that no probe has proven": (
        lambda case: case.other.hello(tags={"cuda": "trust me"}), 422, ("node refused", "bench-2", "false_tag"),
    ),
    "a processor that says it is two": (
        lambda case: case.other.hello(tags={"x86": "yes"}, facts={**FACTS, "arch": "aarch64"}),
        422, ("node refused", "bench-2", "false_tag"),
    ),
}  # fmt: skip


def everything() -> dict[str, list[dict[str, Any]]]:
    """Every row of the farm but those of the logs; a run's revision moves with its log."""
    ours = [model for model in apps.get_models() if model.__module__.startswith("farm.") and model.__name__ not in LOGS]
    rows = {model.__name__: list(model.objects.order_by("pk").values()) for model in ours}  # type: ignore[attr-defined]
    for run in rows["Run"]:
        del run["revision"]
    return rows


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_in_a_sentence_noted_and_changes_nothing(
    name: str, team: Team, owner: User, member: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, status, noted = BAD[name]
    case = Case(team, owner, member)
    before: list[Any] = []
    after: list[Any] = []
    _around_the_last_request(monkeypatch, before, after)
    answer = send(case)
    assert answer.status_code == status, answer.content
    body = answer.json()
    assert body["detail"].endswith("."), body
    assert after[-1] == before[-1]
    events = AuditEvent.objects.filter(verb__in=("node refused", "enrolment refused"))
    assert [(event.verb, event.subject, event.facts["code"]) for event in events] == ([noted] if noted else [])


def _around_the_last_request(monkeypatch: pytest.MonkeyPatch, before: list[Any], after: list[Any]) -> None:
    """Looks at every row before and after each request of a node: what leads up to the bad one may change them."""
    for method in ("post", "put", "get"):
        original = getattr(NodeClient, method)

        def looked_at(self: NodeClient, *given: Any, _original: Any = original, **more: Any) -> Response:
            before.append(everything())
            answer: Response = _original(self, *given, **more)
            after.append(everything())
            return answer

        monkeypatch.setattr(NodeClient, method, looked_at)


def test_the_same_refusal_again_and_again_is_one_entry(team: Team, owner: User, member: User) -> None:
    case = Case(team, owner, member)
    for _ in range(5):
        case.report(make_check(0), token="ofa_forged")
        NodeClient("x").hello()
    assert AuditEvent.objects.filter(verb="node refused").count() == 2
    AuditEvent.objects.update(at=timezone.now() - timedelta(hours=1))
    case.report(make_check(0), token="ofa_forged")
    assert AuditEvent.objects.filter(verb="node refused").count() == 3


def test_a_team_s_admin_sees_what_its_nodes_were_refused(team: Team, owner: User, member: User) -> None:
    from farm.accounts.selectors import audit_events_visible_to

    case = Case(team, owner, member)
    case.report(make_check(0), token="ofa_forged")
    assert audit_events_visible_to(owner).filter(verb="node refused").exists()
    assert not audit_events_visible_to(member).filter(verb="node refused").exists()
