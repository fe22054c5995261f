"""What integration tests have in common: looks at models that do not begin with an import of onnx each."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from farm.contract.cells import Budget
from farm.rules.planning.estimates import ROUNDS
from farm.sandbox.ending import Ending
from farm.workshop import confined
from tests.bench.blocks import BRIEF, shortened_windows
from tests.integration.worker.making import share_runtimes


@pytest.fixture(autouse=True, scope="module")
def _forked_looks() -> Iterator[None]:
    """Every look at a model is a confined fork of one server with onnx imported, as those of a `prepare` worker are.

    A fresh interpreter for each, as in a process that looks once, costs half a second of processor time and more.
    tests/unit/workshop and the commands that tests start as processes of their own take that way.
    """
    alone = confined.call_child

    def one_of_many(function: str, payload: dict[str, Any], *, keep_alive: bool = False, **how: Any) -> Ending:
        return alone(function, payload, keep_alive=True, **how)

    with mock.patch.object(confined, "call_child", one_of_many):
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose runtimes are shared with the other tests."""
    folder = tmp_path_factory.mktemp("home")
    share_runtimes(folder)
    return folder


@pytest.fixture
def shortened() -> Iterator[None]:
    """What is asserted does not depend on how long a sample measures."""
    with shortened_windows(BRIEF):
        yield


@pytest.fixture
def two_rounds() -> Iterator[None]:
    """Of the quick budget's eight, each of which launches each arm: for what asserts no interval."""
    quick = replace(ROUNDS[Budget.QUICK], minimum=2, usual=2, maximum=2)
    with mock.patch.dict(ROUNDS, {Budget.QUICK: quick}):
        yield
