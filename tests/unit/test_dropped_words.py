"""Plain English: what docs/words.md says that we no longer write stands in no page, message, help text or document."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from tests.conftest import PROJECT

WORDS = PROJECT / "docs/words.md"
PACKAGES = ("dashboard", "farm", "onnxfarm", "worker")
# docstrings of commands and endpoints are read by users: as help of the command line, and as descriptions of the API
SHOWN_DOCSTRINGS = ("onnxfarm/commands", "farm/api")
# the list itself, and records of what was said and measured at the time
RECORDS = ("words.md", "decisions.md", "proofs/", "screens/", "rediscovery.md")
# what a dropped word may be the beginning or the end of
GOOD = ("is no longer", "there is no", "there are no", "are no longer")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?=[\s>])|[\"'=<>/]")
_FILLED = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def test_the_list_of_dropped_words_can_be_read() -> None:
    assert "take it along" in dropped()
    assert len(dropped()) > 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<h2>Take it along</h2>", ["take it along"]),
        ("It has\n  opened none.", ["has opened none"]),
        ("model.txt is no ONNX model", ["is no"]),
        ("<dt>Tells</dt>", ["tells"]),
        ("There is no run 3; it is no longer stored", []),
        ("Untold: hook", []),
    ],
)
def test_a_dropped_word_is_seen_wherever_it_stands(text: str, said: list[str]) -> None:
    assert list(unwanted(text)) == said


@pytest.mark.parametrize("package", PACKAGES)
def test_no_message_says_what_we_dropped(package: str) -> None:
    assert [
        f"{path.relative_to(PROJECT)}:{line}: {word}"
        for path in sorted((PROJECT / package).rglob("*.py"))
        if "migrations" not in path.parts
        for line, text in strings(path)
        for word in unwanted(text)
    ] == []


def test_no_page_says_what_we_dropped() -> None:
    pages = [*(PROJECT / "dashboard").rglob("*.html"), *(PROJECT / "dashboard/static/dashboard/js").glob("*.js")]
    assert len(pages) > 50
    assert said_in(pages) == []


def test_no_document_says_what_we_dropped() -> None:
    names = {path: path.relative_to(PROJECT / "docs").as_posix() for path in (PROJECT / "docs").rglob("*.md")}
    read = [path for path, name in names.items() if not name.startswith(RECORDS)]
    assert said_in([*read, PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]) == []


def said_in(paths: Sequence[Path]) -> list[str]:
    return [f"{path.relative_to(PROJECT)}: {word}" for path in sorted(paths) for word in unwanted(_text_of(path))]


def _text_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return _COMMENT.sub("", text) if path.suffix == ".js" else _FILLED.sub("{}", text)


@lru_cache(maxsize=1)
def dropped() -> tuple[str, ...]:
    """The words of the table's first column, in small letters."""
    table = WORDS.read_text(encoding="utf-8").partition("## What we no longer write")[2]
    return tuple(word.lower() for word in re.findall(r"^\| ([^|`]+?) \|", table, re.MULTILINE)[1:])


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{re.escape(word)}(?!\w)" for word in dropped()))


def unwanted(text: str) -> Iterator[str]:
    """The dropped words that a text has."""
    plain = " ".join(_TAG.sub(" ", text).lower().split())
    for good in GOOD:
        plain = plain.replace(good, "…")
    yield from _pattern().findall(plain)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module, with its line; what an f-string fills in is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    is_shown = path.relative_to(PROJECT).as_posix().startswith(SHOWN_DOCSTRINGS)
    inside = {id(text) for node, text in _docstrings(tree) if not (is_shown and getattr(node, "decorator_list", ()))}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(value) for value in node.values}
            yield node.lineno, "".join(value.value if _is_text(value) else "{}" for value in node.values)  # type: ignore[attr-defined]
        elif _is_text(node) and id(node) not in inside:
            yield node.lineno, node.value  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _docstrings(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield node, body[0].value
