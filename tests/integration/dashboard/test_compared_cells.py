"""Cells of any runs beside each other: searched for, pinned, their equal rows hidden, all of it in the address."""

import csv
import io
import re

import pytest
from django.test import Client

from farm.accounts.models import User
from farm.runs.models import Run
from tests.integration.dashboard.conftest import client_of
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db


def address(run: Run, *cells: str, more: str = "") -> str:
    return "/compare/?" + "&".join(f"cells={run.pk}:{cell}" for cell in cells) + more


def test_the_base_is_pinned_in_the_address_and_any_cell_can_be_pinned(signed_in: Client, run: Run) -> None:
    response = signed_in.get(address(run, "c1", "c5"))
    assert f'href="?cells={run.pk}:c1&amp;cells={run.pk}:c5&amp;base={run.pk}:c5"' in response.content.decode()
    words = assert_is_page(signed_in.get(address(run, "c1", "c5", more=f"&base={run.pk}:c5")))
    assert re.search(r"1\.29\.0 is [\d.]+ % faster than 1\.31\.1", words)
    # the column is named after what stands in it, which may be processor time
    assert "Node median time Against the base" in words
    for odd in ("", "9:x", f"{run.pk}:c2"):
        assert re.search(
            r"encoder: 1\.31\.1 is [\d.]+ % slower than 1\.29\.0",
            assert_is_page(signed_in.get(address(run, "c1", "c5", more=f"&base={odd}"))),
        )


def test_rows_and_the_metric_of_the_chart_are_chosen_by_the_address(signed_in: Client, run: Run) -> None:
    page = signed_in.get(address(run, "c1", "c5", more="&metric=session_ms&every=yes&find=runtime"))
    assert "Session creation: 40.0 ms" in assert_is_page(page)
    assert [line.name for line in page.context["rows"]] == ["Runtime", "Packages"]
    assert "No differing row has “zebra”" in assert_is_page(signed_in.get(address(run, "c1", "c5", more="&find=zebra")))
    # forms of the page keep what others chose
    assert '<input type="hidden" name="metric" value="session_ms">' in page.content.decode()
    assert "p50 from " in assert_is_page(signed_in.get(address(run, "c1", "c5", more="&metric=nonsense")))


def test_cells_of_every_run_are_found_by_words(signed_in: Client, stranger: User, run: Run) -> None:
    def matching(client: Client, words: str) -> list[str]:
        return [where for _, _, where in client.get("/compare/", {"q": words}).context["cells"]]

    assert len(matching(signed_in, f"encoder run {run.pk}")) == 8
    both = matching(signed_in, f"run {run.pk} 1.31.1 int8 batch 8")
    assert len(both) == 1
    assert f"run {run.pk}, c" in both[0]
    assert matching(signed_in, "nothing-like-it") == []
    assert "No measured cell matches “nothing-like-it”" in assert_is_page(signed_in.get("/compare/?q=nothing-like-it"))
    assert matching(client_of(stranger), "encoder") == []
    for odd in ("9" * 30, "%", "' OR 1=1", "a " * 60):
        assert_is_page(signed_in.get("/compare/", {"q": odd}))


def test_a_cell_found_by_words_is_called_what_its_numbers_are(signed_in: Client, run: Run) -> None:
    run.version.inspection |= {"dtypes": {"float16": 90, "float32": 9}, "operators": {"Conv": 1}}
    run.version.save()
    found = signed_in.get("/compare/", {"q": f"run {run.pk}"}).context["cells"]
    names = [name for _, name, _ in found]
    assert {"as uploaded: fp16" in name for name in names if "int8" not in name} == {True}
    assert not any("as uploaded" in name for name in names if "int8" in name)


def test_the_rows_are_a_file_with_figures_as_numbers(signed_in: Client, run: Run) -> None:
    text = signed_in.get(address(run, "c1", "c5", more="&as=csv")).content.decode()
    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(rows["p50"][f"{run.pk}:c5"]) == pytest.approx(0.62, rel=0.02)
    assert float(rows["p50"][f"{run.pk}:c5 ratio"]) == pytest.approx(1.24, rel=0.02)
    assert "Batch" not in rows


def test_a_fifth_cell_is_left_out_with_a_word(signed_in: Client, run: Run) -> None:
    words = assert_is_page(signed_in.get(address(run, "c1", "c2", "c3", "c4", "c5")))
    assert "5 cells were chosen; the first 4 of them are compared." in words
    assert "Search every run" not in words


def test_without_chosen_cells_pairs_of_them_are_offered(signed_in: Client, stranger: User, run: Run) -> None:
    page = signed_in.get("/compare/")
    assert_is_page(page)
    [pair] = page.context["pairs"]["Recent runs"]
    assert re.search(r"1\.31\.1 is [\d.]+ % slower", assert_is_page(signed_in.get(pair.href)))
    assert "pairs" not in signed_in.get("/compare/?by=runs").context
    assert client_of(stranger).get("/compare/").context["pairs"] == {}
