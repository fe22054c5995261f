"""Lists and runs as Parquet: written by pyarrow, where the server has it; said in words where it has not."""

import importlib.util
import io
import sys

import pytest
from django.test import Client

from farm.runs.models import Run
from tests.integration.dashboard.pages import assert_is_page

pytestmark = pytest.mark.django_db
has_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed: pip install 'onnxfarm[parquet]'"
)


@has_pyarrow
def test_a_run_and_a_list_are_read_back_with_the_figures_of_their_csv(signed_in: Client, run: Run) -> None:
    from pyarrow import parquet

    cells = parquet.read_table(io.BytesIO(signed_in.get(f"/api/v1/runs/{run.pk}/results.parquet").content)).to_pylist()
    assert {"c1", "c2"} <= {one["id"] for one in cells}
    assert all(isinstance(one["p50_ms"], float) and one["status"] == "done" for one in cells)
    (listed,) = parquet.read_table(io.BytesIO(signed_in.get("/runs/?as=parquet").content)).to_pylist()
    assert (listed["id"], listed["model"], listed["rounds"]) == (run.pk, "encoder", 8)


def test_a_run_that_has_not_changed_is_answered_with_304_as_parquet_as_it_is_as_csv(
    signed_in: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.api.runs.make_parquet", lambda rows: b"PAR1%d" % len(rows))
    for ending in ("csv", "parquet"):
        address = f"/api/v1/runs/{run.pk}/results.{ending}"
        first = signed_in.get(address)
        again = signed_in.get(address, headers={"if-none-match": first["ETag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
        assert "no-cache" in first["Cache-Control"]
    assert first["Content-Disposition"] == f'attachment; filename="run-{run.pk}.parquet"'
    run.touch()
    assert signed_in.get(address, headers={"if-none-match": first["ETag"]}).status_code == 200


def test_a_server_without_pyarrow_says_what_is_missing(signed_in: Client, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = signed_in.get(f"/api/v1/runs/{run.pk}/results.parquet")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_pyarrow")
    words = assert_is_page(signed_in.get("/runs/?as=parquet"), 422)
    assert "pyarrow is not installed on the farm's server" in words
    assert "pip install 'onnxfarm[parquet]'" in words
