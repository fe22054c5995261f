"""The table of releases that load a version: derived from its stamps, and measured where a run has shown it."""

import json

import pytest

from farm.accounts.models import Team, User
from farm.contract.blocks import Lease
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import EndReport
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.registry.states import VersionState
from farm.runs.models import CellDocument
from tests.conftest import ApiOf
from tests.integration.runs.making import make_node, make_version, post, reports_of
from tests.unit.rules.making import make_check, make_operator, make_trace

pytestmark = pytest.mark.django_db
REFUSED = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="ONNX Runtime 1.29.0 has no kernel for Foo.")


def address(version: Version) -> str:
    return f"/api/v1/versions/{version.pk}/compatibility"


def test_before_any_run_every_row_is_derived(api_of: ApiOf, viewer: User, team: Team) -> None:
    version = make_version(team, opsets={"": 21, "ai.onnx.ml": 5}, ir_version=10, unused_opsets=("ai.onnx.ml",))
    answer = api_of(viewer).get(address(version)).json()
    assert answer["lowest"] == "1.18.0"
    assert {row["basis"] for row in answer["rows"]} == {"derived"}
    rows = {row["version"]: row for row in answer["rows"]}
    assert (rows["1.17.3"]["loads"], rows["1.17.3"]["code"]) == (False, "opset_too_new")
    assert rows["1.31.1"]["text"] == "loads"


def test_what_a_run_showed_is_measured_with_its_reason_and_its_fusions(
    api_of: ApiOf, viewer: User, node: Node, version: Version, lease: Lease
) -> None:
    arms = {arm.cell.runtime.version: arm.arm for arm in lease.order.arms}
    others = {number: 1.0 for number in (one.arm for one in lease.order.arms) if number != arms["1.29.0"]}
    facts, *rest = reports_of(lease, others)
    checks = [report for report in rest if report.kind == "check"]
    rounds = [report for report in rest if report.kind == "round"]
    refused = make_check(arms["1.29.0"], reason=REFUSED, outputs=())
    twins = [one.arm for one in lease.order.arms if one.cell.runtime.version == "1.29.0"]
    copy = make_operator("b", 0.5, op_type="ReorderOutput")
    trace = make_trace(arms["1.31.1"], [make_operator("a", 1.0), make_operator("b", 2.0), copy])
    for report in (facts, refused, *checks, trace, *rounds, EndReport(wall_s=1.0)):
        post(node, lease, report)
    rows = {row["version"]: row for row in api_of(viewer).get(address(version)).json()["rows"]}
    assert (rows["1.31.1"]["loads"], rows["1.31.1"]["basis"], rows["1.31.1"]["executed_nodes"]) == (True, "measured", 2)
    assert rows["1.30.0"]["basis"] == "derived"
    # measured by an older farm: its cells have the counts of providers alone
    for kept in CellDocument.objects.all():
        CellDocument.objects.filter(pk=kept.pk).update(body=json.dumps({**json.loads(kept.body), "executed": {}}))
    rows = {row["version"]: row for row in api_of(viewer).get(address(version)).json()["rows"]}
    assert rows["1.31.1"]["executed_nodes"] == 3
    if len(twins) == 1:
        assert (rows["1.29.0"]["loads"], rows["1.29.0"]["text"]) == (False, REFUSED.text)


def test_releases_that_only_a_node_knows_are_in_the_table(api_of: ApiOf, viewer: User, team: Team) -> None:
    make_node(team, name="ahead", runtimes=["onnxruntime==1.40.0", "onnxruntime-openvino==1.41.0"])
    rows = api_of(viewer).get(address(make_version(team))).json()["rows"]
    assert (rows[-1]["version"], rows[-1]["basis"]) == ("1.40.0", "derived")


def test_a_stranger_sees_no_table_and_an_open_version_has_none(
    api_of: ApiOf, stranger: User, member: User, version: Version
) -> None:
    assert api_of(stranger).get(address(version)).status_code == 404
    Version.objects.filter(pk=version.pk).update(state=VersionState.PENDING, inspection=None)
    answer = api_of(member).get(address(version))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_inspected")
