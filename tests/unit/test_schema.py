"""`onnxfarm schema`: JSON Schema 2020-12 that every document of this product passes, and that others do not."""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from farm.contract.document import SCHEMA, make_json_schema
from onnxfarm.main import app
from tests.conftest import PROJECT
from tests.documents import make_cell, make_comparison, make_document


def recorded() -> dict[str, dict[str, Any]]:
    """Every bench document in the tree, as its commit wrote it."""
    read = {path: path.read_bytes() for path in (PROJECT / "tests").rglob("*document.json")}
    read |= {path: lzma.decompress(path.read_bytes()) for path in (PROJECT / "tests/recorded").glob("*/*.json.xz")}
    documents = {str(path.relative_to(PROJECT)): json.loads(text) for path, text in read.items()}
    return {name: document for name, document in documents.items() if document.get("schema") == SCHEMA}


DOCUMENTS = recorded()
CELL = make_document(make_cell()).to_json()


def problems(document: object) -> list[str]:
    return [error.message for error in jsonschema_rs.Draft202012Validator(make_json_schema()).iter_errors(document)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_any_commit_passes(name: str) -> None:
    assert problems(DOCUMENTS[name]) == []


def test_both_forms_of_metrics_are_among_them() -> None:
    metrics = [cell.get("metrics") for document in DOCUMENTS.values() for cell in document["cells"]]
    assert {isinstance(found, Mapping) for found in metrics if found} == {True, False}


def test_what_is_written_today_passes() -> None:
    document = make_document(make_cell("c1", metrics=[{"name": "p50_ms", "value": 1.0}]), make_cell("c2"))
    document = document.model_copy(update={"comparisons": [make_comparison()]})
    assert problems(json.loads(document.to_json())) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "onnxfarm.bench/2"},
        {"cells": [{}]},
        {"cells": None},
        {"comparisons": [{"baseline": "c1"}]},
        {"seed": "none"},
    ],
)
def test_what_is_no_document_does_not_pass(changes: dict[str, object]) -> None:
    assert problems(json.loads(CELL) | changes)


def test_a_document_without_its_schema_does_not_pass() -> None:
    document = json.loads(CELL)
    del document["schema"]
    assert problems(document)


@pytest.mark.parametrize("name", ["bench", "matrix"])
def test_the_command_prints_a_schema(name: str) -> None:
    done = CliRunner().invoke(app, ["schema", name])
    jsonschema_rs.meta.validate(json.loads(done.stdout))


def test_a_schema_that_there_is_not_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["schema", "benhc"])
    assert (done.exit_code, done.stdout, "bench" in done.stderr) == (2, "", True)
