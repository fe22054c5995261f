"""The documents: short, of one kind each, and reached from the index. Links between them: the pages that show them."""

import re

import pytest

from tests.conftest import PROJECT

DOCS = PROJECT / "docs"
LONGEST = 1500
# records that grow: a paragraph a decision, a row a published change, a picture a page
RECORDS = ("decisions.md", "rediscovery.md", "screens/README.md")
NAMES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
READ_AT_ONCE = [name for name in NAMES if name not in RECORDS and not name.startswith("proofs/")]


@pytest.mark.parametrize("name", READ_AT_ONCE)
def test_a_document_is_read_in_one_sitting(name: str) -> None:
    words = len((DOCS / name).read_text(encoding="utf-8").split())
    assert words <= LONGEST, f"docs/{name} has {words} words: split it, or move what was measured to docs/proofs"


def test_the_index_names_every_document() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
    assert sorted(set(NAMES) - linked - {"README.md"}) == []
