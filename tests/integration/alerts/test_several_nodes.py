"""A watch whose matrix names several nodes: each has its own changes and points, and one cause is one alert."""

import re

import pytest

from dashboard.reading import alerts as listing
from dashboard.views import alert as reading
from farm.accounts.models import User
from farm.alerts.models import Alert, Point, WatchRound
from farm.alerts.selectors.badges import describe_model_status
from farm.alerts.services import announcements
from farm.contract.cells import CellSpec
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.registry.models import Version
from farm.runs.models import Run
from farm.runs.states import BlockState
from tests.integration.alerts.driving import MATRIX, Lab, make_watch, offer
from tests.integration.dashboard.rows import make_node
from tests.integration.dashboard.watching import bare_alert

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
    assert (alert.node, "peak memory of a launch 191 MiB instead of 91 MiB" in alert.sentence) == ("bench-2", True)
    assert sorted(Point.objects.values_list("node", flat=True)) == ["bench-1", "bench-2"]


def test_what_breaks_on_both_nodes_is_one_alert_that_names_both(
    version: Version, member: User, node: Node, second: Node
) -> None:
    reason = Reason(code=ReasonCode.CRASHED, text="It died.")

    def dies(spec: CellSpec) -> dict[str, object]:
        return {"reason": reason} if spec.runtime.version == "1.30.0" else {}

    make_watch(version, member, matrix=BOTH)
    offer("1.29.0", "1.30.0")
    Two(node, checks=dies).live()
    alert = Alert.objects.get()
    assert (alert.nodes, alert.release) == (["bench-1", "bench-2"], "onnxruntime==1.30.0")
    assert sorted(alert.symptoms.values_list("node", "kind")) == [("bench-1", "failed"), ("bench-2", "failed")]
    assert alert.sentence.endswith("Also on bench-2 (fails).")


def test_one_cause_is_told_once_with_the_figure_of_each_node_and_ends_when_both_are_well(
    version: Version, member: User, node: Node, second: Node
) -> None:
    make_watch(version, member, matrix=BOTH)
    offer("1.29.0", "1.30.0")
    lab = Two(node)
    lab.latency = lambda spec: {("bench-1", "1.30.0"): 1.3, ("bench-2", "1.30.0"): 1.5}.get(
        (lab.node.name, spec.runtime.version), 1.0
    )
    lab.live()
    alert = Alert.objects.get()
    assert alert.node == "bench-1"
    figures = {row.node: round(row.size or 0, 1) for row in alert.symptoms.filter(kind="slower")}
    assert figures == {"bench-1": 1.3, "bench-2": 1.5}
    assert [row.line.values.count(" → ") for row in reading.name_comparisons(alert) if row.line] == [1, 1]
    assert re.search(r"on bench-1 .* Also on bench-2 \([\d.]+ % slower\)\.$", alert.sentence)
    assert list(alert.events.filter(kind__in=["opened", "widened"]).values_list("kind", flat=True)) == ["opened"]
    # each is resolved by what its own node shows
    lab.latency = lambda spec: {("bench-2", "1.31.0"): 1.5}.get((lab.node.name, spec.runtime.version), 1.0)
    offer("1.29.0", "1.30.0", "1.31.0")
    lab.live()
    alert = Alert.objects.get(pk=alert.pk)
    assert dict(alert.symptoms.values_list("node", "resolved_in")) == {"bench-1": "1.31.0", "bench-2": ""}
    assert alert.state == "open"


def test_another_kind_of_change_on_the_second_node_has_an_alert_of_its_own(
    version: Version, member: User, node: Node, second: Node
) -> None:
    make_watch(version, member, matrix=BOTH)
    offer("1.29.0", "1.30.0")
    lab = Two(node)
    lab.changes = lambda spec: {"peak_memory_bytes": 200_000_000 if lab.is_second(spec) else 95_000_000}
    lab.latency = lambda spec: 1.3 if (lab.node.name, spec.runtime.version) == ("bench-1", "1.30.0") else 1.0
    lab.live()
    assert sorted(Alert.objects.values_list("node", flat=True)) == ["bench-1", "bench-2"]


def test_a_notice_tells_what_leads_first(version: Version, member: User) -> None:
    alert = bare_alert(make_watch(version, member), version)
    for kind, size in (("memory", 9.0), ("parity", None), ("slower", 1.5)):
        alert.symptoms.create(node="bench-1", series=kind, kind=kind, text=f"{kind} {size}", size=size, cell="c2")
    told = [line for line in announcements._write_text(alert, alert.events.get()).splitlines() if line.startswith("- ")]
    assert [line.split()[1] for line in told] == ["parity", "slower", "ONNX", "memory"]


@pytest.mark.parametrize(
    ("known", "began"),
    [
        ({}, "between 1.29.0 and 1.32.0"),
        ({"last_good": "1.29.0", "earliest_bad": "1.31.0"}, "between 1.29.0 and 1.31.0"),
        ({"last_good": "1.29.0", "earliest_bad": "1.30.0", "first_bad": "1.30.0"}, "since 1.30.0"),
    ],
)
def test_an_alert_claims_no_release_before_a_bisection_names_it(
    version: Version, member: User, known: dict[str, str], began: str
) -> None:
    watch = make_watch(version, member)
    alert = bare_alert(watch, version, bad="1.32.0", **known)
    event = alert.events.get()
    text = announcements._write_text(alert, event)
    page = reading.make_opening(alert).because
    row = listing.make_table([alert]).rows[0]
    assert alert.since_phrase == began == alert.since_sentence.lower() == row[7].text
    assert f"{alert.since_sentence}." in text
    assert page.replace("\N{NO-BREAK SPACE}", " ").startswith(f"{alert.since_sentence} ")
    assert describe_model_status(version.model).text == f"slower {began}"
    if "first_bad" not in known:
        assert not any("since" in said.lower() for said in (text, page, row[7].text))
