"""The examples of docs/extending.md, and the modules of its package, run as they stand there."""

import re
from pathlib import Path

import pytest

from onnxfarm.testing import FakeFarm
from tests.conftest import PROJECT
from tests.integration.testing.test_fake_node import order

PAGE = PROJECT / "docs" / "extending.md"
PACKAGE = PROJECT / "docs" / "examples" / "acme"
MODULES = {path.stem: path.read_text() for path in sorted(PACKAGE.glob("*.py"))}
EXAMPLES = [*re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL), *MODULES.values()]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_page_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeFarm() as other:
        names = {"order": order(other, "1.31.1")}
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number + 1}", "exec"), names)
    assert "farm.offer" not in EXAMPLES[number] or names["farm"].reports("b1")  # type: ignore[attr-defined]


def test_every_stand_in_has_an_example() -> None:
    import onnxfarm.testing

    shown = "".join(EXAMPLES)
    missing = {name for name in vars(onnxfarm.testing) if name[0].isupper()} - set(re.findall(r"\w+", shown))
    assert missing == set()
