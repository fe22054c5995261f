"""Asking the node that measured a cell where its outputs part: queued, ordered, answered, downloaded, refused."""

import io
import zipfile
from hashlib import sha256
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.base.refusals import Conflict, Unprocessable
from farm.contract.divergence import (
    DivergenceDocument,
    DivergenceOrder,
    DivergenceReport,
    FirstDivergence,
    Part,
    Side,
    Spread,
    TensorLook,
)
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.fleet.states import NodeHealth
from farm.runs import services
from farm.runs.models import Block, Divergence, Run
from farm.runs.states import BlockState, RunState
from tests.conftest import ApiOf
from tests.integration.runs.making import claim, first_block, measure, post
from tests.unit.rules.making import make_facts

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/runs/{run}/cells/{cell}/divergences"


def ask(client: Client, run: Run, cell: str = "c2", **body: Any) -> Any:
    return client.post(ADDRESS.format(run=run.pk, cell=cell), body, content_type="application/json")


def answer(**changes: Any) -> DivergenceDocument:
    look = TensorLook(
        name="c_q", dtype="uint8", shape=(4,), reference_shape=(4,), violations=1, elements=4,
        candidate=Spread(minimum=0, maximum=3), reference=Spread(minimum=0, maximum=2),
    )  # fmt: skip
    part = Part(nodes=("conv", "quantise"), main="model.onnx", shows_it=True, look=look, files=("model.onnx",))
    found = FirstDivergence(tensor="c_q", node="quantise", op_type="QuantizeLinear", look=look, part=part)
    known: dict[str, Any] = {
        "model": "model.onnx", "candidate": Side(runtime="onnxruntime==1.31.1"), "reference": "the CPU", "atol": 1e-5,
        "rtol": 1e-4, "sentence": "The first tensor beyond tolerance is c_q.", "output": look, "found": found,
    }  # fmt: skip
    return DivergenceDocument(**{**known, **changes})


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("model.onnx", b"a part")
    return content.getvalue()


def test_a_question_goes_to_the_node_that_measured_and_changes_nothing_of_the_results(
    member_api: Client, node: Node, done: Run
) -> None:
    before = member_api.get(f"/api/v1/runs/{done.pk}/results").json()
    asked = ask(member_api, done)
    assert asked.status_code == 202
    assert (asked.json()["state"], asked.json()["is_open"], asked.json()["answer"]) == ("asked", True, None)
    block = first_block(done)
    assert (block.state, block.only_node) == (BlockState.QUEUED, node)
    lease = claim(node, block)
    assert lease.order.divergences == (DivergenceOrder(arm=1),)
    assert [arm.cell.runtime.version for arm in lease.order.arms] == ["1.31.1"]
    body = zipped()
    digest = services.accept_part(
        node=node, block_id=lease.order.block, attempt=lease.order.attempt, token=lease.token, arm=1, chunks=[body]
    )
    assert digest == sha256(body).hexdigest()
    reports = (make_facts(), DivergenceReport(arm=1, document=answer(), part_sha256=digest), EndReport(wall_s=1.0))
    for report in reports:
        post(node, lease, report)
    done.refresh_from_db()
    assert (first_block(done).state, done.state) == (BlockState.DONE, RunState.FINISHED)
    (row,) = member_api.get(ADDRESS.format(run=done.pk, cell="c2")).json()
    assert (row["state"], row["sentence"]) == ("found", "The first tensor beyond tolerance is c_q.")
    assert row["answer"]["schema"] == "onnxfarm.divergence/1"
    assert row["answer"]["found"]["node"] == "quantise"
    download = member_api.get(row["part"])
    assert b"".join(download) == body
    assert "attachment" in download["Content-Disposition"]
    after = member_api.get(f"/api/v1/runs/{done.pk}/results").json()
    assert after["cells"] == before["cells"]
    assert after["comparisons"] == before["comparisons"]


def test_two_cells_of_a_block_are_held_against_each_other(member_api: Client, node: Node, done: Run) -> None:
    assert ask(member_api, done, against="c1").json()["against"] == "c1"
    lease = claim(node, first_block(done))
    assert lease.order.divergences == (DivergenceOrder(arm=1, against=0),)
    assert len(lease.order.arms) == 2


def test_a_question_that_waits_is_not_asked_twice_and_one_that_failed_may_be_asked_again(
    member_api: Client, node: Node, done: Run
) -> None:
    first, second = ask(member_api, done).json(), ask(member_api, done).json()
    assert first["id"] == second["id"]
    lease = claim(node, first_block(done))
    why = Reason(code=ReasonCode.TIMEOUT, text="Looking between the nodes did not end in time.")
    for report in (make_facts(), DivergenceReport(arm=1, reason=why), EndReport(wall_s=1.0)):
        post(node, lease, report)
    row = member_api.get(f"/api/v1/divergences/{first['id']}").json()
    assert (row["state"], row["sentence"], row["is_open"]) == ("failed", why.text, False)
    assert member_api.get(f"/api/v1/divergences/{first['id']}/part.zip").status_code == 404
    assert ask(member_api, done).json()["state"] == "asked"
    assert Divergence.objects.count() == 1


def test_a_node_that_gives_up_leaves_the_results_and_a_question_to_ask_again(member_api: Client, node: Node, done: Run):
    asked = ask(member_api, done).json()
    for _ in range(3):
        lost = Reason(code=ReasonCode.INTERNAL, text="The node lost its disk.")
        post(node, claim(node, first_block(done)), EndReport(reason=lost))
        Node.objects.filter(pk=node.pk).update(health=NodeHealth.ACTIVE)
    assert first_block(done).state == BlockState.DONE
    row = member_api.get(f"/api/v1/divergences/{asked['id']}").json()
    assert (row["is_open"], row["sentence"]) == (False, "The node lost its disk.")
    assert ask(member_api, done).json()["is_open"]


@pytest.mark.parametrize(
    ("cell", "against", "status", "words"),
    [
        ("c9", None, 404, "no measured cell 'c9'"),
        ("c2", "c9", 404, "no measured cell 'c9'"),
        ("c2", "c2", 409, "not another cell of the block"),
        ("c2", "x" * 41, 422, ""),
    ],
)
def test_a_question_that_means_nothing_is_refused_in_a_sentence(
    member_api: Client, done: Run, cell: str, against: str | None, status: int, words: str
) -> None:
    response = ask(member_api, done, cell, against=against)
    assert response.status_code == status
    assert words in str(response.json())


def test_nothing_is_asked_while_the_block_is_measured_or_when_its_node_is_gone(
    member_api: Client, node: Node, run: Run
) -> None:
    response = ask(member_api, run)
    assert (response.status_code, response.json()["detail"]) == (409, "c2 has no outputs: it is not measured yet.")
    measure(node, first_block(run), [1.0, 1.2, 1.0])
    Node.objects.filter(pk=node.pk).update(health=NodeHealth.RETIRED)
    response = ask(member_api, run)
    assert (response.status_code, response.json()["code"]) == (409, "node_gone")


def test_lookers_on_may_not_ask_and_strangers_see_nothing(
    api_of: ApiOf, viewer: User, stranger: User, member: User, done: Run
) -> None:
    assert ask(api_of(viewer), done).status_code == 403
    assert ask(api_of(stranger), done).status_code == 404
    asked = ask(api_of(member), done).json()
    assert api_of(viewer).get(f"/api/v1/divergences/{asked['id']}").status_code == 200
    assert api_of(stranger).get(f"/api/v1/divergences/{asked['id']}").status_code == 404


def test_a_part_that_nobody_asked_for_or_that_is_no_zip_is_refused(member_api: Client, node: Node, done: Run):
    ask(member_api, done)
    lease = claim(node, first_block(done))
    held = {"node": node, "block_id": lease.order.block, "attempt": lease.order.attempt, "token": lease.token}
    with pytest.raises(Unprocessable, match="No search was requested for arm 0"):
        services.accept_part(**held, arm=0, chunks=[zipped()])
    with pytest.raises(Unprocessable, match="not a zip"):
        services.accept_part(**held, arm=1, chunks=[b"PK", b"no", b""])
    post(node, lease, EndReport(wall_s=1.0))
    with pytest.raises(Conflict):
        services.accept_part(**held, arm=1, chunks=[zipped()])


def test_an_answer_about_an_arm_that_the_block_lacks_is_refused(member_api: Client, node: Node, done: Run):
    ask(member_api, done)
    lease = claim(node, first_block(done))
    with pytest.raises(Unprocessable, match="cannot be true"):
        post(node, lease, DivergenceReport(arm=9, document=answer()))
    assert Block.objects.get(pk=first_block(done).pk).state == BlockState.LEASED
