"""The screens of docs/deploying.md on containers: their lines, which the stack types with podman for docker."""

import re
import shlex
from collections.abc import Mapping
from typing import Final

from tests.acceptance.containers.images import ROOT

HEADING: Final = "\n## Kubernetes\n"


def typed(*beginning: str, instead: Mapping[str, str] | None = None) -> list[str]:
    """The words of the one line that begins so, with these texts in the place of those. AssertionError without one."""
    section = (ROOT / "docs" / "deploying.md").read_text().partition(HEADING)[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    found = [words for words in lines if tuple(words[: len(beginning)]) == beginning]
    assert len(found) == 1, f"the page has {len(found)} lines that begin with {' '.join(beginning)}"
    words = found[0]
    for old, new in (instead or {}).items():
        assert any(old in word for word in words), f"the line has no {old}: {' '.join(words)}"
        words = [word.replace(old, new) for word in words]
    return words
