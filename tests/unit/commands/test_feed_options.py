"""What a model is fed, as options say it over a matrix."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from farm.config.embedded.quickstart import parse_options
from farm.rules.matrices import matrix
from onnxfarm.commands.feed_options import apply_feed_options
from onnxfarm.main import app
from onnxfarm.problems import Usage


def fed(declared: Any, shape: list[str] | None = None, inputs: list[str] | None = None) -> Any:
    return apply_feed_options(declared, shape=shape, inputs=inputs)


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


@pytest.mark.parametrize("declared", [None, {"batch": [1]}, {"matrix": {"batch": [1]}}])
def test_the_newest_of_all_takes_the_place_of_the_default_runtimes(declared: Any) -> None:
    found = matrix.parse(apply_feed_options(declared, shape=None, inputs=None, pre=True))
    assert (found.pre, "runtime" in found.axes, "batch" in found.axes) == (True, False, True)


def test_the_newest_of_all_is_not_asked_for_beside_runtimes_that_are_named() -> None:
    with pytest.raises(Usage, match="--pre is about the newest release"):
        apply_feed_options({"strategy": {"matrix": {"runtime": ["1.31.1"]}}}, shape=None, inputs=None, pre=True)


def test_without_a_matrix_the_default_one_is_measured_with_these_sizes() -> None:
    found = matrix.parse(fed(None, ["seq=64"]))
    assert {**found.axes, "shapes": ()} == {**matrix.default_matrix().axes, "shapes": ()}


@pytest.mark.parametrize(
    ("shape", "inputs", "words"),
    [
        (["seq"], None, "--shape 'seq' is not NAME=SIZE, like sequence=64."),
        (["seq="], None, "--shape 'seq=' is not NAME=SIZE"),
        (["=64"], None, "--shape '=64' is not NAME=SIZE"),
        (["seq=-3"], None, "--shape 'seq=-3' is not NAME=SIZE"),
        (["seq=1.5"], None, "--shape 'seq=1.5' is not NAME=SIZE"),
        (["seq=many"], None, "--shape 'seq=many' is not NAME=SIZE"),
        (["seq=" + "9" * 5000], None, "--shape seq is 999999999999: write a size from 0 to"),
        (["seq=4,frames=5"], None, "--shape 'seq=4,frames=5' holds several sizes: give --shape once for each."),
        (["seq=4", "seq=5"], None, "--shape seq is given twice, with 4 and 5"),
        (None, ["ids"], "--input 'ids' is not NAME=VALUE or NAME=LOW..HIGH"),
        (None, ["ids="], "--input 'ids=' is not NAME=VALUE or NAME=LOW..HIGH"),
        (None, ["=1"], "--input '=1' is not NAME=VALUE or NAME=LOW..HIGH"),
        (None, ["ids=9..0"], "--input 'ids=9..0': The range '9..0' ends below its start"),
        (None, ["ids=a"], "--input 'ids=a': An input cannot be made of 'a'"),
        (None, ["ids=0..1e999"], "--input 'ids=0..1e999': "),
        (None, ["ids=" + "9" * 5000], "--input "),
        (None, ["ids=0", "ids=1"], "--input ids is given twice, with 0 and 1"),
    ],
)
def test_a_mistyped_value_is_told_in_a_sentence_with_the_option_and_the_value(shape: Any, inputs: Any, words: str):
    with pytest.raises(Usage) as refused:
        fed(None, shape, inputs)
    assert str(refused.value).startswith(words)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--inputs", "inputz.npz"], "--inputs inputz.npz is not a file: give the path of an .npz."),
        (["submit", "--inputs", "inputz.npz"], "--inputs inputz.npz is not a file: give the path of an .npz."),
        (["submit", "--inputs", "."], "--inputs . is a folder: give the path of an .npz."),
        (["submit", "--calibration", "samplez"], "--calibration samplez is not a file: give the path of an .npz."),
        (["submit", "--shape", "seq"], "--shape 'seq' is not NAME=SIZE"),
        (["plan", "--input", "ids"], "--input 'ids' is not NAME=VALUE or NAME=LOW..HIGH"),
    ],
)
def test_what_is_mistyped_is_told_before_a_farm_is_asked(tmp_path: Path, words: list[str], said: str) -> None:
    model = tmp_path / "model.onnx"
    model.touch()
    done = CliRunner().invoke(app, [words[0], str(model), *words[1:]])
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_quickstart_takes_sizes_and_inputs() -> None:
    found = parse_options(["--shape", "height=320", "--shape", "width=320", "--input", "ids=0..9"])
    assert (found.shape, found.input, found.inputs) == (["height=320", "width=320"], ["ids=0..9"], None)
