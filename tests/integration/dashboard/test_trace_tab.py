"""The Trace tab of a cell: one inference as a timeline, its placement, how its launches settle."""

import gzip
import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from farm.accounts.models import User
from farm.registry import storage
from farm.runs import services
from farm.runs.models import Run, TraceReading
from farm.runs.services import timelines
from farm.workshop import orders
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page
from tests.integration.runs.making import first_block


def trace(*, nodes: int = 12) -> list[dict[str, Any]]:
    """Five inferences as ONNX Runtime writes them, made up."""
    events = []
    for number in range(5):
        start = 10_000 * number
        events.append({"cat": "Session", "name": "model_run", "ts": start, "dur": 50 * nodes + 20, "tid": 1})
        for place in range(nodes):
            args = {"op_name": "MatMul" if place % 2 else "Softmax", "provider": "CPUExecutionProvider"}
            name = f"/layers.{place}/MatMul_kernel_time"
            events.append({"cat": "Node", "name": name, "ts": start + 50 * place, "dur": 40, "tid": 1, "args": args})
    return events


def store(run: Run, content: bytes, *, digest: str) -> None:
    """A raw trace of the run's first arm."""
    path = storage.blob_path(team_id=run.team_id, sha256=digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    run.team.blobs.create(sha256=digest, bytes=len(content))
    first_block(run).attempts.get().traces.create(arm=0, trace_round=0, sha256=digest, bytes=len(content))


def read(run: Run) -> None:
    """What a `prepare` worker does once somebody has looked."""
    services.find_or_order_timeline(run, "c1")
    for reading in TraceReading.objects.filter(state="asked"):
        services.read_trace(reading.pk)


def address(run: Run) -> str:
    return f"/runs/{run.pk}/cells/c1/?view=trace"


def test_the_timeline_is_drawn_and_stands_as_a_table_too(signed_in: Client, run: Run) -> None:
    store(run, gzip.compress(json.dumps(trace()).encode()), digest="a1" * 32)
    first = signed_in.get(address(run)).content.decode()
    # what the cell's operators say leads while the trace is read
    assert re.search(r"<h1 [^>]*>\w+ takes [\d.]+[^<]* of a traced inference", first)
    assert timelines.WAITS in first
    assert 'hx-trigger="load delay:2s"' in first
    read(run)
    page = signed_in.get(address(run))
    words = assert_is_page(page)
    assert " of a traced inference" in words
    assert "All 12 executed nodes of the main graph ran on CPU" in words
    assert "/layers.11/MatMul" in words
    text = page.content.decode()
    assert "load delay" not in text
    assert 'data-zoom tabindex="0"' in text
    assert 'data-zoom-by="earlier"' in text
    assert "/api/v1/traces/" in text
    # the made-up node sends three timings a launch
    assert "No launch has the 10 timings" in words


def test_a_long_trace_stays_below_the_limit_of_a_figure(signed_in: Client, run: Run) -> None:
    store(run, gzip.compress(json.dumps(trace(nodes=4000)).encode()), digest="a2" * 32)
    read(run)
    text = signed_in.get(address(run)).content.decode()
    figure = text.split('id="figure-timeline">')[1].split("</script>")[0]
    assert len(figure.encode()) < 300_000
    assert len(json.loads(figure)["data"]) == 2


@pytest.mark.parametrize(
    ("content", "sentence", "digest"),
    [
        (b"not gzip", "The trace cannot be read.", "b1" * 32),
        (gzip.compress(b"[1, 2"), "The trace cannot be read.", "b2" * 32),
        (gzip.compress(b"[" * 100_000), "The trace cannot be read.", "b3" * 32),
        (gzip.compress(b"[]"), "The trace holds no whole inference.", "b4" * 32),
        (gzip.compress(json.dumps(trace(nodes=0)).encode()), "The trace holds no executed node.", "b5" * 32),
    ],
    ids=["not gzip", "cut", "nested", "empty", "no nodes"],
)
def test_a_trace_that_cannot_be_drawn_is_a_sentence(
    signed_in: Client, run: Run, content: bytes, sentence: str, digest: str
) -> None:
    store(run, content, digest=digest)
    read(run)
    assert sentence in assert_is_page(signed_in.get(address(run)))


def test_a_trace_is_read_in_the_workshop_and_never_by_the_web_process(signed_in: Client, run: Run) -> None:
    """Some kilobytes that unpack without end, and only brackets in them: the page costs a row and no more."""
    store(run, gzip.compress(b"[" * 60_000_000), digest="f1" * 32)
    for _ in range(3):
        assert timelines.WAITS in signed_in.get(address(run)).content.decode()
    assert TraceReading.objects.get().tries == 1
    read(run)
    assert TraceReading.objects.get().state == "failed"


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * orders.MAX_EVENTS + b"{}]",
        b"[" + b" " * orders.MAX_TRACE_BYTES + b"]",
        json.dumps(trace(nodes=orders.MAX_SPANS + 1)).encode(),
    ],
    ids=["events", "bytes", "spans"],
)
def test_a_trace_of_more_than_can_be_drawn_is_left_to_perfetto(signed_in: Client, run: Run, text: bytes) -> None:
    store(run, gzip.compress(text, compresslevel=1), digest="f2" * 32)
    read(run)
    assert "open it in Perfetto" in assert_is_page(signed_in.get(address(run)))


def test_a_reading_whose_worker_is_lost_is_asked_again_and_then_given_up(signed_in: Client, run: Run) -> None:
    store(run, gzip.compress(json.dumps(trace()).encode()), digest="f3" * 32)
    for tries in (1, 2, 3):
        assert timelines.WAITS in assert_is_page(signed_in.get(address(run)))
        assert TraceReading.objects.get().tries == tries
        TraceReading.objects.update(asked_at=timezone.now() - 2 * timelines.ASKED_AGAIN_AFTER)
    assert timelines.LOST in assert_is_page(signed_in.get(address(run)))


def test_without_a_trace_or_its_file_the_page_says_so(signed_in: Client, run: Run) -> None:
    assert "No trace of this cell is stored." in assert_is_page(signed_in.get(address(run)))
    first_block(run).attempts.get().traces.create(arm=0, trace_round=0, sha256="d1" * 32, bytes=3)
    read(run)
    assert "The trace is no longer stored." in assert_is_page(signed_in.get(address(run)))


def test_the_cells_page_leads_to_it_and_so_does_its_old_address(signed_in: Client, run: Run) -> None:
    text = signed_in.get(f"/runs/{run.pk}/cells/c1/").content.decode()
    assert signed_in.get(f"/runs/{run.pk}/cells/c1/closer/")["Location"] == address(run)
    assert f'href="{address(run)}"' in text
    assert f"/models/versions/{run.version_id}/graph/?cell={run.pk}:c1" in text


def test_an_unknown_cell_and_a_stranger_get_a_404(signed_in: Client, run: Run, stranger: User) -> None:
    assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/nope/?view=trace"), 404)
    assert_is_page(client_of(stranger).get(address(run)), 404)


def test_cold_start_and_memory_have_tabs_on_the_run(signed_in: Client, run: Run) -> None:
    assert "then p50, ms" in assert_is_page(signed_in.get(f"/runs/{run.pk}/?chart=cold-start"))
    assert "peak, MiB" in assert_is_page(signed_in.get(f"/runs/{run.pk}/?chart=memory"))
