"""The documents of security name tests and files as their evidence. A name that leads nowhere fails here."""

import ast
import re
from functools import cache

import pytest

from tests.conftest import PROJECT

DOCUMENTS = ("security", "threats")
TEXT = "\n".join((PROJECT / "docs" / f"{name}.md").read_text() for name in DOCUMENTS)
NAMED = sorted(set(re.findall(r"`((?:unit|integration|acceptance)/[\w/]+\.py)::([^`]+)`", TEXT)))
ATTACKERS = (
    "A stranger",
    "A member",
    "A viewer, a reader of a share link, a badge",
    "An admin of a team",
    "A node and its owner",
    "The farm, towards a node",
    "A package index, a package",
    "A model inside a child",
    "Another site, a listener on the network",
)


@cache
def names_in(path: str) -> frozenset[str]:
    """The tests that a file below tests/ holds by name; none when there is no such file."""
    file = PROJECT / "tests" / path
    if not file.is_file():
        return frozenset()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds))


def part(heading: str) -> str:
    """What stands below a heading, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"no document of security has a part “{heading}”"
    return found[1]


@pytest.mark.parametrize(("path", "name"), NAMED, ids="::".join)
def test_a_test_that_the_document_names_exists(path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in names_in(path), f"tests/{path} has no {name}: name the test that tries this attack now"


def test_every_mention_of_a_test_is_read() -> None:
    """A name in another form would be looked at by nobody."""
    assert TEXT.count("::") == len(re.findall(r"`(?:unit|integration|acceptance)/[\w/]+\.py::test_\w+`", TEXT))


def test_each_of_the_eleven_doors_has_a_row_with_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", part("The eleven doors"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 12))
    assert [number for number, row in rows if "::test_" not in row] == []


@pytest.mark.parametrize("heading", ATTACKERS)
def test_every_row_of_an_attacker_names_a_test(heading: str) -> None:
    rows = [line for line in part(heading).splitlines() if line.startswith("|")][2:]
    assert rows
    assert [row for row in rows if "::test_" not in row] == []


def test_the_second_reading_and_what_is_left_open_are_written_down() -> None:
    assert "|" in part("What was followed to its end")
    assert "|" in part("What is left open")
