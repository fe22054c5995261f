"""The documents are reached from the index. Links between them: the pages that show them."""

import re

from tests.conftest import PROJECT

DOCS = PROJECT / "docs"


def test_the_index_names_every_document() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+\.md)\)", index))
    names = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(names - linked - {"README.md"}) == []
