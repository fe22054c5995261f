"""The graph in Netron, the timeline by keyboard and the brush, in a real browser."""

import gzip
import json

import onnx
import pytest
from onnx import TensorProto, helper
from playwright.sync_api import expect

from farm.registry import services, storage
from farm.registry.models import Outline, Version
from farm.runs.models import Run
from tests.acceptance.browser.conftest import PHONE, Opening, explore
from tests.integration.dashboard import rows
from tests.integration.dashboard.test_trace_tab import read as read_trace
from tests.integration.dashboard.test_trace_tab import store as store_trace
from tests.integration.dashboard.test_trace_tab import trace

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def store_model(version: Version) -> None:
    """A chain of nodes that are called as the made-up trace calls them; the first one has a weight."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("t0", "t4")]
    nodes = [
        helper.make_node("Relu", [f"t{place}"], [f"t{place + 1}"], name=name)
        for place, (name, *_) in enumerate(rows.OPERATORS)
    ]
    nodes[0].op_type = "Add"
    nodes[0].input.append("w")
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [1.0] * 16)
    content = helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], [weight])).SerializeToString()
    assert onnx.load_from_string(content).graph.node
    path = storage.blob_path(team_id=version.artifact.team_id, sha256=version.artifact.files.get().blob.sha256)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    services.make_outline(Outline.objects.create(artifact=version.artifact).pk)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_netron_draws_the_graph_with_times_on_its_nodes_and_asks_nobody(opened: Opening, finished: Run, scheme: str):
    store_model(finished.version)
    page = opened(f"/models/versions/{finished.version_id}/graph/?cell={finished.pk}:c5", scheme=scheme)
    page.wait_for_selector("#netron[data-drawn]")
    frame = page.frame_locator("#netron")
    expect(frame.locator(".farm-time")).to_have_count(len(rows.OPERATORS))
    expect(frame.locator(".farm-time text").first).to_contain_text("µs")
    expect(frame.locator(":root")).to_have_attribute("data-theme", scheme)
    # a shape in brackets that every font has
    expect(frame.locator(".node-argument", has_text="‹4×4›")).to_have_count(1)
    # it opens where most time is spent
    expect(frame.locator(".node.graph-node.select")).to_contain_text("261 µs")
    page.locator("#operators tbody button").nth(1).click()
    expect(frame.locator(".node.graph-node.select")).to_contain_text("178 µs")
    frame.locator(".node-item-type").nth(2).click()
    expect(page.locator("#operators tr[aria-current]")).to_contain_text(rows.OPERATORS[2][0])
    expect(frame.locator("#sidebar-content")).to_contain_text("ran as SkipLayerNormalization on CPU")
    with page.expect_download() as saved:
        page.locator("[data-graph=svg]").click()
    assert saved.value.suggested_filename == "encoder.svg"
    assert "<svg" in saved.value.path().read_text()
    page.watch.assert_is_clean()  # type: ignore[attr-defined]


def test_a_file_that_is_gone_is_said_beside_the_table_and_the_page_fits_a_phone(opened: Opening, finished: Run) -> None:
    store_model(finished.version)
    outline = Outline.objects.get().blob
    storage.blob_path(team_id=finished.version.artifact.team_id, sha256=outline.sha256).unlink()
    page = opened(f"/models/versions/{finished.version_id}/graph/", size=PHONE)
    expect(page.locator("#graph-says")).to_contain_text("is not stored any more")
    expect(page.locator("#operators tbody tr")).to_have_count(len(rows.OPERATORS))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_timeline_is_moved_by_keys_and_a_frame_around_points_chooses_cells(opened: Opening, finished: Run) -> None:
    store_trace(finished, gzip.compress(json.dumps(trace()).encode()), digest="e1" * 32)
    read_trace(finished)
    page = opened(f"/runs/{finished.pk}/cells/c1/?view=trace")
    chart = page.locator("#chart-timeline")
    chart.focus()
    # Plotly comes with the first key
    page.keyboard.press("0")
    page.wait_for_selector("#chart-timeline.ready")
    whole = chart.evaluate("(chart) => chart.layout.xaxis.range")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    low, high = chart.evaluate("(chart) => chart.layout.xaxis.range")
    assert whole[0] < low < high <= whole[1]
    page.locator("[data-zoom-by=whole]").click()
    assert chart.evaluate("(chart) => chart.layout.xaxis.range") == whole

    page.goto(f"/runs/{finished.pk}/?chart=latency")
    explore(page)
    box = page.locator("#chart-latency .nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=4)
    page.mouse.up()
    said = page.locator(".brushed")
    expect(said).to_contain_text("Selected: 8 cells")
    said.get_by_text("only these in the table").click()
    expect(page.locator("#cells-table tbody tr:visible")).to_have_count(8)
    said.get_by_text("clear").click()
    expect(said).to_have_count(0)
    page.watch.assert_is_clean()  # type: ignore[attr-defined]
