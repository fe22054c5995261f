"""The documents about matrices and providers hold what the code reads and writes."""

import runpy
from pathlib import Path

import pytest

from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.matrices import matrix
from farm.rules.runtimes.providers import PROVIDERS

DOCS = Path(__file__).parents[3] / "docs"
WRITER = runpy.run_path(str(DOCS.parent / "deploy" / "document-providers"))
EXAMPLES = sorted((DOCS / "examples").glob("*.*"))


def test_the_file_with_every_key_is_read_and_has_every_key():
    read = matrix.parse((DOCS / "examples" / "every-key.yaml").read_text(encoding="utf-8"))
    assert set(read.axes) == set(MATRIX_AXES)
    assert read.exclude
    assert read.include
    assert read.max_parallel
    assert read.wish == 0.03
    assert set(read.tolerances) == {"logits"}
    assert read.name
    session = read.as_plain()["matrix"]["session"]
    assert [one["name"] for one in session] == ["default", "no-spinning"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_matrix(path):
    assert matrix.parse(path.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", WRITER["DOCUMENTS"], ids=lambda path: path.name)
def test_what_the_documents_say_of_providers_is_what_the_table_says(path):
    text = path.read_text("utf-8")
    assert WRITER["PART"].search(text)
    assert WRITER["written"](text) == text, "run deploy/document-providers"


def test_every_provider_stands_in_every_table_that_is_written_of_them():
    for part in ("names", "machines", "settings"):
        rows = WRITER["PARTS"][part]().splitlines()[2:]
        assert [row.split("`")[1] for row in rows] == [entry.short for entry in PROVIDERS]


def test_a_change_of_the_table_changes_the_documents():
    page = (DOCS / "reference" / "providers.md").read_text("utf-8")
    assert WRITER["written"](page.replace("an NVIDIA GPU whose driver answers", "a wish")) == page
