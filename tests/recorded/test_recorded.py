"""Documents that older commits measured read and look as they did: see README.md."""

import difflib
from pathlib import Path

import pytest

from tests.recorded import presenting

REWRITE = "python -m tests.recorded.presenting"


@pytest.mark.parametrize("document", presenting.recorded(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_recorded_document_is_presented_as_before(document: Path) -> None:
    kept = presenting.expected_path(document).read_text(encoding="utf-8").splitlines()
    changed = list(difflib.unified_diff(kept, presenting.present(document).splitlines(), "kept", "now", lineterm=""))
    assert not changed, "\n".join([f"If this is meant, run `{REWRITE}` and review the diff:", *changed])


def test_every_kind_of_document_is_recorded_of_the_commit_before_the_walls() -> None:
    names = {path.name.removesuffix(".json.xz") for path in presenting.recorded() if path.parent.name == "e675fbd5"}
    assert names >= {"single", "fresh", "load", "sustained", "generate", "gate", "bisect", "sweep", "diverge", "run"}


def test_each_kept_text_belongs_to_a_document() -> None:
    assert {presenting.expected_path(path) for path in presenting.recorded()} == set(presenting.HERE.glob("*/*.txt"))
