"""Prompts on the command line: with --prompts or in a model's zip, the same cells; every bad form in one sentence."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from farm.rules.matrices import matrix as matrices
from farm.workshop import arrays
from farm.workshop.samples import builders
from onnxfarm.commands.feed_options import refuse_unused_prompts
from onnxfarm.here import workbench
from onnxfarm.problems import Usage
from onnxfarm.subject import Subject

pytestmark = pytest.mark.slow
DECLARED = matrices.parse({"runtime": ["1.31.1"], "scenario": ["generate:new=8", "generate:prompt=16:new=8"]})


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return builders.write_model("decoder", tmp_path)


def test_arms_of_given_prompts_are_handed_the_file_and_those_of_drawn_ones_are_not(model: Path, tmp_path: Path) -> None:
    given = arrays.write_npz(tmp_path / "mine.npz", {"prompt": np.array([[5, 17, 3]])})
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.write(model, "decoder.onnx")
        archive.write(given, "prompts.npz")
    orders = []
    for subject in (Subject(model, prompts=given), Subject(tmp_path / "model.zip")):
        with workbench.open_workbench(subject, home=tmp_path / "home", console=Console(file=io.StringIO())) as bench:
            for block in bench.plan(DECLARED).blocks:
                order, refused = bench.measurer.preparation.make_order(block, seed=0)
                assert (refused, order is None) == ([], False)
                orders.append(order)
    one, drawn, zipped, _ = [order.arms[0] for order in orders if order is not None]
    assert one.cell.workload.scenario == f"generate:prompt=3:new=8:given={one.prompts.sha256}"
    assert drawn.prompts is None
    assert drawn.cell.workload.scenario == "generate:prompt=16:new=8"
    assert zipped.cell.digest == one.cell.digest


def test_prompts_that_do_not_fit_and_those_of_nothing_that_generates_are_refused(model: Path, tmp_path: Path) -> None:
    bad = arrays.write_npz(tmp_path / "bad.npz", {"prompt": np.array([1000])})
    subject = Subject(model, prompts=bad)
    with (
        pytest.raises(Usage, match=r"bad.npz: prompt\[0\] is the token id 1000, and the vocabulary has 1,000"),
        workbench.open_workbench(subject, home=tmp_path / "home", console=Console(file=io.StringIO())),
    ):
        pass
    with pytest.raises(Usage, match="--prompts are generated from: add --scenario generate:new=64"):
        refuse_unused_prompts(bad, ("fresh",))
    refuse_unused_prompts(bad, ("single", "generate:new=8"))
    refuse_unused_prompts(None, ())


@pytest.mark.parametrize(
    ("declared", "lengths"),
    [
        ({}, [(1, 256), (64, 0)]),
        ({"shapes": [{"sequence_length": 8}]}, [(8, 256)]),
        ({"scenario": ["fresh"]}, [(1, 256)]),
    ],
)
def test_a_decoder_is_measured_by_a_token_and_by_a_prompt_where_nobody_says(
    declared: dict[str, object], lengths: list[tuple[int, int]], model: Path, tmp_path: Path
) -> None:
    said = io.StringIO()
    with workbench.open_workbench(
        Subject(model), home=tmp_path / "home", console=Console(file=said, width=200)
    ) as bench:
        plan = bench.plan(bench.add_default_shapes(matrices.parse({"runtime": ["1.31.1"], **declared})))
    shapes = [arm.spec.workload.shapes for block in plan.blocks for arm in block.arms if arm.twin_of is None]
    assert [(sizes["sequence_length"], sizes["past_sequence_length"]) for sizes in shapes] == lengths
    assert {sizes["total_sequence_length"] - sizes["past_sequence_length"] for sizes in shapes} <= {1, 64}
    assert ("--scenario generate" in said.getvalue()) == (declared == {})
