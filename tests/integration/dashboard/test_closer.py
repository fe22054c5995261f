"""A closer look at a cell: a timeline of its trace, its placement, how its launches settle."""

import gzip
import json
from typing import Any

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.registry import storage
from farm.runs.models import Run
from farm.runs.selectors import closer
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
    path = storage.place(team_id=run.team_id, sha256=digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    run.team.blobs.create(sha256=digest, bytes=len(content))
    first_block(run).attempts.get().traces.create(arm=0, trace_round=0, sha256=digest, bytes=len(content))


def address(run: Run) -> str:
    return f"/runs/{run.pk}/cells/c1/closer/"


def test_the_timeline_is_drawn_and_stands_as_a_table_too(signed_in: Client, run: Run) -> None:
    store(run, gzip.compress(json.dumps(trace()).encode()), digest="a1" * 32)
    page = signed_in.get(address(run))
    words = assert_is_page(page)
    assert "One inference of 620 µs, 77 % of it in nodes; longest: " in words
    assert "All 12 executed nodes of the main graph ran on CPU" in words
    assert "/layers.11/MatMul" in words
    text = page.content.decode()
    assert 'data-zoom tabindex="0"' in text
    assert 'data-zoom-by="earlier"' in text
    assert "/api/v1/traces/" in text
    # the made-up node sends three timings a launch
    assert "No launch has 10 timings" in words


def test_a_long_trace_stays_below_the_limit_of_a_figure(signed_in: Client, run: Run) -> None:
    store(run, gzip.compress(json.dumps(trace(nodes=4000)).encode()), digest="a2" * 32)
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
    assert sentence in assert_is_page(signed_in.get(address(run)))


def test_a_trace_that_is_too_long_is_left_to_perfetto(
    signed_in: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closer, "LONGEST_TRACE", 100)
    store(run, gzip.compress(json.dumps(trace()).encode()), digest="c1" * 32)
    assert "open it in Perfetto" in assert_is_page(signed_in.get(address(run)))


def test_without_a_trace_or_its_file_the_page_says_so(signed_in: Client, run: Run) -> None:
    assert "No trace of this cell is stored." in assert_is_page(signed_in.get(address(run)))
    first_block(run).attempts.get().traces.create(arm=0, trace_round=0, sha256="d1" * 32, bytes=3)
    assert "The trace is not stored any more." in assert_is_page(signed_in.get(address(run)))


def test_the_cells_page_fetches_it_when_it_is_reached(signed_in: Client, run: Run) -> None:
    text = signed_in.get(f"/runs/{run.pk}/cells/c1/").content.decode()
    assert f'hx-get="{address(run)}"' in text
    assert f'href="{address(run)}"' in text
    assert f"/models/versions/{run.version_id}/graph/?cell={run.pk}:c1" in text


def test_an_unknown_cell_and_a_stranger_get_a_404(signed_in: Client, run: Run, stranger: User) -> None:
    assert_is_page(signed_in.get(f"/runs/{run.pk}/cells/nope/closer/"), 404)
    assert_is_page(client_of(stranger).get(address(run)), 404)


def test_cold_start_and_memory_have_tabs_on_the_run(signed_in: Client, run: Run) -> None:
    start = assert_is_page(signed_in.get(f"/runs/{run.pk}/?chart=cold-start"))
    assert "Until the first answer: " in start
    assert "then p50, ms" in start
    memory = assert_is_page(signed_in.get(f"/runs/{run.pk}/?chart=memory"))
    assert "peak, MB" in memory
