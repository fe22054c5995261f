"""Operators, graphs and inferences of compared cells, each by its address."""

import csv
import gzip
import io
import json
import re

import pytest
from django.test import Client

from farm.runs.models import Run
from tests.integration.dashboard.pages import assert_is_page
from tests.integration.dashboard.test_trace_tab import read, store, trace

pytestmark = pytest.mark.django_db


def test_operators_stand_side_by_side_with_what_moved_marked(signed_in: Client, run: Run) -> None:
    chosen = f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5&view=operators"
    words = assert_is_page(signed_in.get(chosen))
    assert "2 of 4 operators moved, most SkipLayerNormalization" in words
    assert words.count("▲ longer") == 2
    assert "FusedMatMul" not in words
    assert "FusedMatMul" in assert_is_page(signed_in.get(f"{chosen}&every=yes"))
    assert assert_is_page(signed_in.get(f"{chosen}&base={run.pk}:c5")).count("▼ shorter") == 2
    rows = list(csv.DictReader(io.StringIO(signed_in.get(f"{chosen}&as=csv").content.decode())))
    assert [row[f"{run.pk}:c5 moved"] for row in rows] == ["longer", "longer"]


def test_the_graph_has_both_times_and_a_cell_that_is_none_is_not_compared(signed_in: Client, run: Run) -> None:
    graph = f"/models/versions/{run.version_id}/graph/?cell={run.pk}:c5"
    page = signed_in.get(f"{graph}&against={run.pk}:c1")
    assert "2 of 4 operators moved" in assert_is_page(page)
    notes = re.search(r'id="graph-notes">(.*?)</script>', page.content.decode())
    assert sorted(str(note["step"]) for note in json.loads(notes[1]).values()) == ["0"] * 4 + ["longer"] * 2
    for odd in ("x", "9:c1", f"{run.pk}:c5"):
        assert "of the time" in assert_is_page(signed_in.get(f"{graph}&against={odd}"))


def test_two_traces_are_lanes_with_a_diff_of_their_graphs(signed_in: Client, run: Run) -> None:
    chosen = f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5&view=timeline"
    assert "fused alike." in assert_is_page(signed_in.get(chosen))
    store(run, gzip.compress(json.dumps(trace()).encode()), digest="c1" * 32)
    read(run)
    page = signed_in.get(chosen)
    assert "One traced inference: 620 µs in 1.29.0" in assert_is_page(page)
    # pages of the cell lead there
    for path in (f"/runs/{run.pk}/cells/c1/?view=trace", f"/runs/{run.pk}/cells/c5/?view=trace"):
        assert f'href="{chosen.replace("&", "&amp;")}"' in signed_in.get(path).content.decode()


def test_timelines_say_why_there_are_none(signed_in: Client, run: Run) -> None:
    assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&cells={run.pk}:c5&view=timeline"))
    # one cell alone has nothing beside it
    assert "Choose another cell" in assert_is_page(signed_in.get(f"/compare/?cells={run.pk}:c1&view=timeline"))
