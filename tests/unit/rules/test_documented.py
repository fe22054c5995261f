"""The documents about matrices and bench documents hold what the code reads and writes."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from farm.contract import document
from farm.rules.cells.matrix_axes import AXES
from farm.rules.matrices import matrix
from farm.rules.runtimes.providers import PROVIDERS

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.*"))


def fenced(text):
    (block,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    return block


def test_the_file_with_every_key_is_read_and_has_every_key():
    read = matrix.parse(fenced((DOCS / "matrix.md").read_text(encoding="utf-8")))
    assert set(read.axes) == set(AXES)
    assert read.exclude
    assert read.include
    assert read.max_parallel
    assert (read.sustained, read.wish) == (10.0, 0.03)
    assert set(read.tolerances) == {"logits"}
    assert read.name
    session = read.as_plain()["matrix"]["session"]
    assert [one["name"] for one in session] == ["default", "no-spinning"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_matrix(path):
    assert matrix.parse(path.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_the_provider_table_of_the_documentation_is_that_of_the_code():
    rows = re.findall(r"^\| `([a-z0-9-]+)`(?:, `[a-z-]+`)* \| (\w+) \|", (DOCS / "matrix.md").read_text("utf-8"), re.M)
    assert {name: short for short, name in rows} == {entry.name: entry.short for entry in PROVIDERS}


def parts():
    return [
        value
        for value in vars(document).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == document.__name__
    ]


@pytest.mark.parametrize("part", parts(), ids=lambda part: part.__name__)
def test_every_key_of_the_bench_document_is_documented(part):
    text = (DOCS / "bench.md").read_text(encoding="utf-8")
    for name, field in part.model_fields.items():
        assert f"`{field.alias or name}`" in text, f"{part.__name__}.{name}"
