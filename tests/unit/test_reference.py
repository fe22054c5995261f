"""The reference of docs/reference/ is what the code says now, and the code says something of each entry."""

import pytest

from farm.config.environment import Environment
from farm.contract.document import Document
from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison, MetricChange
from farm.contract.document_find import Found, FoundSetting, LeftSetting
from farm.runs.states import BlockState
from tests import reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_the_reference_is_what_the_code_says(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        written = (reference.FOLDER / name).read_text(encoding="utf-8")
        assert written == text, f"{name} is stale: `python -m tests.reference` writes it"


@pytest.mark.parametrize(
    "kind",
    [Accuracy, Cell, Comparison, Document, Environment, Found, FoundSetting, LeftSetting, MetricChange],
    ids=lambda kind: kind.__name__,
)
def test_every_field_has_a_meaning(kind: type) -> None:
    said = reference.comments(kind)
    assert [name for name in kind.__annotations__ if name != "model_config" and not said.get(name)] == []


def test_every_state_has_a_meaning() -> None:
    said = reference.comments(BlockState)
    assert [state.name for state in BlockState if not said[state.name]] == []


class Made:
    # of both
    first: int = 1
    second: str = ""
    third: str = "#"  # its own, of a line with a sign in it
    fourth = 4


def test_what_stands_above_is_of_those_that_follow_until_one_has_its_own() -> None:
    own = "its own, of a line with a sign in it"
    assert reference.comments(Made) == {"first": "of both", "second": "of both", "third": own, "fourth": ""}


def test_each_key_of_a_matrix_has_an_example(pages: dict[str, str]) -> None:
    rows = [line.split(" | ") for line in pages["matrix-keys.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    assert [row[0] for row in rows if not row[-1].strip(" |") or not row[1].strip()] == []
