"""A watch whose matrix names several nodes: each of them has its own changes, alerts and points."""

import pytest

from farm.accounts.models import User
from farm.alerts.models import Alert, Point, WatchRound
from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.states import BlockState
from tests.integration.alerts.driving import MATRIX, Lab, make_watch, offer
from tests.integration.dashboard.rows import make_node

pytestmark = pytest.mark.django_db
BOTH = {**MATRIX, "hardware": ["node:bench-1", "node:bench-2"]}


class Two(Lab):
    """Each block is measured by the node that it asks for."""

    def measure(self, run: Run, *, most_blocks: int | None = None, most_rounds: int | None = None) -> None:
        while block := run.blocks.filter(state=BlockState.QUEUED).order_by("number").first():
            self.node = Node.objects.get(name=block.hardware.removeprefix("node:"))
            super().measure(run, most_blocks=1)

    def is_second(self, spec: CellSpec) -> bool:
        """Whether the newer release is measured on the second node."""
        return (self.node.name, spec.runtime.version) == ("bench-2", "1.30.0")


@pytest.fixture
def second(node: Node, owner: User) -> Node:
    return make_node(node.team, owner, name="bench-2")


def test_what_is_worse_on_the_second_node_alone_is_its_alert(version: Version, member: User, node: Node, second: Node):
    make_watch(version, member, matrix=BOTH)
    offer("1.29.0", "1.30.0")
    lab = Two(node)
    lab.changes = lambda spec: {"peak_memory_bytes": 200_000_000 if lab.is_second(spec) else 95_000_000}
    lab.live()
    one = WatchRound.objects.get()
    assert (one.compared, one.confirming is not None) == (2, True)
    alert = Alert.objects.get()
    assert (alert.node, "peak memory 90.6 → 191 MiB" in alert.sentence) == ("bench-2", True)
    assert sorted(Point.objects.values_list("node", flat=True)) == ["bench-1", "bench-2"]


def test_what_breaks_on_both_nodes_is_an_alert_for_each_under_one_release(
    version: Version, member: User, node: Node, second: Node
) -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")

    def dies(spec: CellSpec) -> dict[str, object]:
        return {"reason": reason} if spec.runtime.version == "1.30.0" else {}

    make_watch(version, member, matrix=BOTH)
    offer("1.29.0", "1.30.0")
    Two(node, checks=dies).live()
    assert [(one.node, one.release) for one in Alert.objects.order_by("node")] == [
        ("bench-1", "onnxruntime==1.30.0"),
        ("bench-2", "onnxruntime==1.30.0"),
    ]
