"""`onnxfarm plan`: from the command line to the farm and back."""

import io
from typing import Any

import pytest
from rich.console import Console

from farm.accounts.models import Team, User
from farm.contract.api.runs import OpenPlanOut
from farm.rules.planning.plans import Plan
from farm.runs.services import make_plan
from onnxfarm.commands.plan import show_plan
from onnxfarm.problems import Usage
from onnxfarm.remote.client import ApiAnswer, Client
from tests.integration.dashboard import rows

TWO: dict[str, Any] = {"budget": "standard", "matrix": {"runtime": ["1.29.0", "1.31.1"], "threads": [1]}}


@pytest.fixture
def version(team: Team, owner: User) -> int:
    """A version that a node could measure."""
    rows.make_node(team, owner)
    return rows.make_version(team, owner).pk


def shown(answer: ApiAnswer[Plan]) -> str:
    console = Console(file=io.StringIO(), width=200)
    show_plan(answer.parsed, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_wish_is_answered_with_rounds_and_minutes_or_that_none_will_do(farm: Client, version: int) -> None:
    text = shown(farm.plan(version, TWO, detect="3%"))
    assert "b1: 3 % is detected in 95 of 100 blocks after 12 rounds, about " in text
    assert "No number of rounds detects 1 %" in shown(farm.plan(version, TWO, detect="1%"))
    assert "95 of 100" not in shown(farm.plan(version, TWO))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("wish", ["much", "", "-3%", "nan", "200%"])
def test_a_wish_that_is_none_is_a_usage_error(farm: Client, version: int, wish: str) -> None:
    with pytest.raises(Usage, match=r"^wish is .*: write the change to be seen, such as 3% or 0\.03"):
        farm.plan(version, TWO, detect=wish)


@pytest.mark.django_db(transaction=True)
def test_a_large_plan_is_waited_for(farm: Client, version: int) -> None:
    states = []

    def work(order: OpenPlanOut) -> None:
        states.append(order.state)
        make_plan(order.id)

    many = {"budget": "quick", "matrix": {**TWO["matrix"], "batch": list(range(1, 252))}}
    assert farm.plan(version, many, progress=work).parsed.cells == 502
    assert states == ["pending"]
