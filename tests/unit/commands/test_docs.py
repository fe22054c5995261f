"""`onnxfarm docs`: what a code means, and what is no code."""

import pytest
from typer.testing import CliRunner

from farm.contract.reasons import ReasonCode
from farm.rules.wording.reasons import REASONS
from onnxfarm.main import app


@pytest.mark.parametrize("code", ReasonCode)
def test_a_code_is_explained_with_an_example_and_the_way_out(code: ReasonCode) -> None:
    done = CliRunner().invoke(app, ["docs", code])
    assert done.exit_code == 0
    assert all(told in done.output for told in REASONS[code])


def test_without_a_code_all_are_listed() -> None:
    lines = CliRunner().invoke(app, ["docs"]).output.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(ReasonCode)


@pytest.mark.parametrize("code", ["no_nod", "No Node", "\x1b[31mred", "../refusals", "-", "a" * 10_000])
def test_what_is_no_code_is_refused_with_those_there_are(code: str) -> None:
    done = CliRunner().invoke(app, ["docs", "--", code])
    assert done.exit_code == 2
    assert "no_node" in done.output
    assert "\x1b[31m" not in done.output
