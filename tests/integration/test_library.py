"""`onnxfarm.bench`, `compare` and `open`: the example of docs/bench.md runs, and bad input is refused in a sentence."""

import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import onnxfarm
from farm.accounts.models import User
from onnxfarm.problems import Problem, Usage
from onnxfarm.remote.account import Account
from tests.conftest import PROJECT
from tests.documents import make_cell, make_document
from tests.integration.client.conftest import account
from tests.integration.dashboard import rows
from tests.integration.worker.making import MODELS

__all__ = ["account"]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("shortened", "two_rounds")
def test_the_example_of_the_documentation_runs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/bench.md").read_text(encoding="utf-8"), re.DOTALL)
    shutil.copy(MODELS / "cnn_dyn.onnx", tmp_path / "encoder.onnx")
    shutil.copy(MODELS / "cnn_fixed_b4.onnx", tmp_path / "retrained.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONNXFARM_HOME", str(home))
    known: dict[str, Any] = {}
    # another thread than the main one cannot ask for signals
    thread = threading.Thread(target=exec, args=(example, known))
    thread.start()
    thread.join()
    assert [(cell.batch, cell.status, cell.p50_ms > 0) for cell in known["results"].cells] == [
        (1, "done", True),
        (4, "done", True),
    ]
    assert [comparison.axis for comparison in known["two"].comparisons] == ["model"]
    assert known["kept"] == known["two"]
    assert list(known["frame"]["model"]) == ["encoder", "retrained"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"runtim": "1.31.1"}, "runtime"),
        ({"provider": "cpux"}, "cpu"),
        ({"budget": "fast"}, "budget"),
        ({"inputs": "none.npz"}, "none.npz"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(home: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(Usage, match=told):
        onnxfarm.bench(MODELS / "relu_op13_ir7.onnx", home=home, quiet=True, **given)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "onnxfarm.bench/2"}', '{"schema": "onnxfarm.bench/1"}'])
def test_a_file_that_is_no_document_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    for given in (path, os.fspath(path), tmp_path / "missing.json"):
        with pytest.raises(Problem, match=r"file\.json|missing\.json"):
            onnxfarm.open(given)


def test_without_pandas_a_table_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    path = tmp_path / "file.json"
    path.write_text(make_document(make_cell()).to_json())
    with pytest.raises(Problem, match="pip install pandas"):
        onnxfarm.open(path).to_pandas()


@pytest.mark.django_db(transaction=True)
def test_a_run_of_a_farm_is_opened_by_its_number(
    account: Account, member: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = member.memberships.get().team
    run = rows.finished_run(rows.make_version(team, member), rows.make_node(team, member), member)
    monkeypatch.setenv("ONNXFARM_TOKEN", account.token)
    results = onnxfarm.open(run.pk, server=account.server)
    assert (results.run, {cell.status for cell in results.cells}) == (str(run.pk), {"done"})
