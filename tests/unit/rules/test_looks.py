"""What a search for the first divergent node shows, judged and said in words."""

from pathlib import Path

import pytest

from farm.contract.reports import OutputParity
from farm.rules.quality.divergence import GraphNode
from farm.rules.quality.looks import Divergence, Look, Sides
from farm.rules.quality.parity import INT8

NOWHERE = Path("nowhere")
LOOK = Look(folder=NOWHERE, main="m.onnx", inputs=NOWHERE, reference=NOWHERE)


def parity(name: str, **more: float) -> OutputParity:
    facts = {"dtype": "float32", "shape": (4,), "reference_shape": (4,), "elements": 4, "max_abs": 0.5, **more}
    return OutputParity.model_validate({"name": name, **facts})


def test_what_is_within_the_preset_does_not_differ() -> None:
    sides = Sides(compare=lambda look: [parity("right"), parity("wrong", violations=1)])
    assert [output.name for output in sides.find_failing_outputs(LOOK)] == ["wrong"]


def test_which_value_is_largest_counts_for_the_models_outputs_alone() -> None:
    swapped = parity("scores", cosine=0.999, top1_agreement=0.5)
    sides = Sides(compare=lambda look: [swapped], preset=INT8)
    assert sides.find_failing_outputs(LOOK, are_intermediate=False) == [swapped]
    assert sides.find_failing_outputs(LOOK) == []


def test_a_search_goes_on_unless_somebody_stops_it() -> None:
    assert Sides(compare=lambda look: []).check() is None


@pytest.mark.parametrize(
    ("name", "part", "shows_it", "sentence"),
    [
        ("conv", ("conv",), True, "c, made by conv (Conv); that node alone shows it."),
        ("", ("conv", "relu"), True, "c, made by c (Conv); 2 nodes together show it: conv, relu."),
        ("conv", ("conv",), False, "c, made by conv (Conv); no smaller part of the model shows it alone."),
    ],
)
def test_the_answer_names_the_tensor_its_node_and_the_part(
    name: str, part: tuple[str, ...], shows_it: bool, sentence: str
) -> None:
    found = Divergence(
        tensor="c",
        node=GraphNode(name, "Conv", ("x",), ("c",)),
        part=part,
        folder=NOWHERE,
        main="m.onnx",
        inputs=NOWHERE,
        reference=NOWHERE,
        parity=parity("y", violations=1),
        tensor_parity=parity("c", violations=1),
        part_parity=parity("c", violations=1) if shows_it else None,
        looks=(("c", False),),
    )
    assert found.sentence() == f"The first tensor beyond tolerance is {sentence}"
