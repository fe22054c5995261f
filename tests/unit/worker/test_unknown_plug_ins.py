"""A plug-in that no table knows: where its library is, and which options it can know."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from worker.runner import faults, plugins
from worker.runner.order import Order


def order(**options: str) -> Order:
    return Order(kind="check", model="", inputs="", provider="theirs", plugin="their_ep:", provider_options=options)


@pytest.mark.parametrize("function", plugins.USUAL_FUNCTIONS)
def test_the_library_is_where_the_package_says(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "their_ep", SimpleNamespace(**{function: lambda: Path("/lib/theirs.so")}))
    assert plugins._find_library("their_ep:") == "/lib/theirs.so"


def test_a_package_that_names_no_library_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "their_ep", SimpleNamespace())
    with pytest.raises(faults.Refusal, match=r"their_ep has no library_path\(\) or get_library_path\(\)"):
        plugins._find_library("their_ep:")


def test_an_option_whose_name_is_nowhere_in_the_library_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "theirs.so"
    library.write_bytes(b"\x7fELF\0threads\0device\0")
    plugins._refuse_unknown_options(order(threads="2", device_type="CPU"), library=str(library), requested=[])
    with pytest.raises(faults.Refusal, match="knows no option 'treads': the word is nowhere in its library"):
        plugins._refuse_unknown_options(order(treads="2"), library=str(library), requested=[])
