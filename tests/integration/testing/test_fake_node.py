"""A made-up node and a made-up farm, with each other; what either does not let pass."""

import pytest

from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import Bundle, CellSpec, FileRef, Runtime
from farm.contract.reports import RoundReport
from farm.rules.judging.summaries import unpack_timings
from onnxfarm.testing import FakeFarm, FakeNode
from worker.agent.connection.gateway import LeaseLostError, NodeUnknownError, RejectedError

CODE = "ofe_12345678"


def order(farm: FakeFarm, *versions: str) -> BlockOrder:
    file = farm.add_file(b"a model", name="m.onnx")
    bundle = Bundle(main="m.onnx", files=(file,))
    cells = [
        CellSpec(artifact_sha256=bundle.digest, runtime=Runtime(distribution="onnxruntime", version=version))
        for version in versions
    ]
    arms = [
        ArmOrder(arm=place, cell=cell, bundle=bundle, source=bundle, inputs=FileRef(name="i", sha256="0" * 64, bytes=1))
        for place, cell in enumerate(cells)
    ]
    return BlockOrder(block="b1", attempt=1, arms=tuple(arms))


def joined(farm: FakeFarm, **options: object) -> FakeNode:
    node = FakeNode(farm.url, **options)
    node.enrol(CODE)
    node.sign_in()
    return node


def test_a_block_is_measured_as_long_as_the_farm_goes_on_with_the_times_that_were_said() -> None:
    with (
        FakeFarm(rounds=3) as farm,
        joined(farm, latency_ms=lambda cell, number: 3.0 if cell.runtime.version == "1.31.1" else 2.0) as node,
    ):
        assert node.hello().queues
        farm.offer(order(farm, "1.30.0", "1.31.1"))
        assert node.work(wait_s=25) == "b1"
        assert node.work() is None
        kinds = [report.kind for report in farm.reports("b1")]
        assert kinds == ["facts", "check", "check", "round", "round", "round", "end"]
        rounds = [report for report in farm.reports("b1") if isinstance(report, RoundReport)]
        samples = {place.arm: place.sample for one in rounds for place in one.samples}
        assert samples[0] is not None
        assert samples[1] is not None
        assert samples[0].p50_ms == pytest.approx(2.0, rel=0.1)
        assert samples[1].p50_ms == pytest.approx(3.0, rel=0.1)
        assert len(unpack_timings(samples[0])) == samples[0].n


def test_a_fetched_file_is_what_was_put_there_and_others_are_missing() -> None:
    with FakeFarm() as farm, joined(farm) as node:
        ref = farm.add_file(b"weights")
        assert b"".join(node.gateway.stream_file(ref.sha256, token="fake-token")) == b"weights"
        with pytest.raises(RejectedError, match="No order of this farm names"):
            list(node.gateway.stream_file("0" * 64, token="fake-token"))


def test_a_farm_refuses_a_node_that_did_not_sign_in_or_signs_with_another_key() -> None:
    with FakeFarm() as farm:
        with FakeNode(farm.url) as stranger, pytest.raises(NodeUnknownError):
            stranger.hello()
        with (
            FakeNode(farm.url, name="other") as other,
            joined(farm),
            pytest.raises(RejectedError, match="not of the key"),
        ):
            other.sign_in()


def test_a_node_that_waits_for_approval_gets_no_secret() -> None:
    with FakeFarm() as farm, FakeNode(farm.url) as node:
        farm.health = "pending"
        node.enrol(CODE)
        with pytest.raises(RejectedError) as refused:
            node.sign_in()
        assert refused.value.code == "pending"


def test_a_stale_token_or_attempt_is_a_409_and_a_body_of_another_shape_a_422() -> None:
    with FakeFarm() as farm, joined(farm) as node:
        farm.offer(order(farm, "1.31.1"))
        with pytest.raises(LeaseLostError, match="Attempt 2"):
            node.gateway.claim("b1", attempt=2)
        with pytest.raises(LeaseLostError, match="another attempt"):
            node.gateway.heartbeat("b1", attempt=1, token="of an earlier one")
        with pytest.raises(RejectedError) as refused:
            node.gateway._send("POST", "hello", content=b'{"facts": 7}')
        assert refused.value.status == 422


def test_a_question_put_in_the_farm_s_place_breaks_it_on_purpose() -> None:
    with FakeFarm() as farm, joined(farm) as node:
        farm.instead = lambda address, body: (
            (409, {"detail": "Taken.", "code": "stale"}) if "claim" in address else None
        )
        farm.offer(order(farm, "1.31.1"))
        with pytest.raises(LeaseLostError, match="Taken"):
            node.work(wait_s=25)
        assert farm.asked("claim") == [{"attempt": 1}]


def test_a_wait_that_is_in_vain_says_what_was_asked_instead() -> None:
    with FakeFarm() as farm, joined(farm), pytest.raises(AssertionError, match=r"\['enrol', 'secret'\]"):
        farm.wait_for("hello", within_s=0.05)
