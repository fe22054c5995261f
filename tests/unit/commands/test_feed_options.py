"""What a model is fed, as options say it over a matrix."""

from typing import Any

import pytest

from farm.config.embedded.quickstart import parsed
from farm.rules.matrices import matrix
from onnxfarm.commands.feed_options import with_feed
from onnxfarm.problems import Usage


def fed(declared: Any, shape: list[str] | None = None, inputs: list[str] | None = None) -> Any:
    return with_feed(declared, shape=shape, inputs=inputs)


def test_without_options_the_matrix_stays_as_it_is() -> None:
    assert fed(None) is None
    assert fed({"runtime": ["1.31.1"]}) == {"runtime": ["1.31.1"]}


@pytest.mark.parametrize(
    "declared",
    [
        {"runtime": ["1.31.1"], "shapes": [{"seq": 1}]},
        {"matrix": {"runtime": ["1.31.1"], "shapes": {"seq": 1}}},
        {"strategy": {"matrix": {"runtime": ["1.31.1"], "shapes": {"seq": 1}}}},
    ],
)
def test_sizes_of_the_command_line_replace_those_of_the_matrix_wherever_they_stand(declared: Any) -> None:
    found = matrix.parse(fed(declared, ["seq=64", "frames=8"]))
    assert found.axes["shapes"] == ({"seq": 64, "frames": 8},)
    assert len(found.axes["runtime"]) == 1


def test_one_input_of_the_command_line_leaves_the_others_of_the_matrix() -> None:
    declared = {"runtime": ["1.31.1"], "inputs": {"ids": "0..9", "speed": "1"}}
    assert matrix.parse(fed(declared, None, ["ids=0..99"])).inputs == {"ids": "0..99", "speed": "1"}


def test_without_a_matrix_the_default_one_is_measured_with_these_sizes() -> None:
    found = matrix.parse(fed(None, ["seq=64"]))
    assert {**found.axes, "shapes": ()} == {**matrix.default().axes, "shapes": ()}


@pytest.mark.parametrize(
    ("shape", "inputs", "words"),
    [
        (["seq"], None, "not NAME=SIZE"),
        (None, ["ids"], "not NAME=VALUE or NAME=LOW..HIGH"),
        (None, ["ids=9..0"], "ends below its start"),
        (None, ["ids=a"], "cannot be made of 'a'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_told(shape: Any, inputs: Any, words: str) -> None:
    with pytest.raises(Usage, match=words):
        fed(None, shape, inputs)


def test_quickstart_takes_sizes_and_inputs() -> None:
    found = parsed(["--shape", "height=320", "--shape", "width=320", "--input", "ids=0..9"])
    assert (found.shape, found.input, found.inputs) == (["height=320", "width=320"], ["ids=0..9"], None)
