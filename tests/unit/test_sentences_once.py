"""A sentence of the product is asserted in one file: it is reworded by one line of code and one of tests."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import PROJECT

ROOMS = ("farm", "worker", "onnxfarm", "dashboard")
WORD = re.compile(r"[^\W\d_]{2,}")
MIN_WORDS = 4


def strings_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(re.sub(r"\\(.)", r"\1", node.value).split())


def asserted_in(path: Path) -> Iterator[str]:
    """What asserts, `match=` and tables of parameters hold."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assert):
            yield from strings_in(node.test)
        elif isinstance(node, ast.Call):
            yield from (text for word in node.keywords if word.arg == "match" for text in strings_in(word.value))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize":
                yield from strings_in(node.args[1])


def test_a_sentence_is_asserted_in_one_file() -> None:
    own = [path for room in ROOMS for path in (PROJECT / room).rglob("*.py") if "migrations" not in path.parts]
    said = "\0".join(text for path in own for text in strings_in(ast.parse(path.read_text(encoding="utf-8"))))
    places: defaultdict[str, set[str]] = defaultdict(set)
    for path in (PROJECT / "tests").rglob("*.py"):
        for text in asserted_in(path):
            if sum(bool(WORD.search(word)) for word in text.split()) >= MIN_WORDS:
                places[text].add(str(path.relative_to(PROJECT)))
    repeated = {text: files for text, files in places.items() if len(files) > 1 and text in said}
    # others assert a mark, a code or a verdict
    assert not repeated, "\n".join(f"{text!r}: {sorted(repeated[text])}" for text in repeated)
