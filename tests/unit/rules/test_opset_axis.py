"""The opset axis: what is converted, what is only put in order, and which operator stops it."""

import pytest

from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix
from farm.rules.planning import planner
from farm.rules.runtimes.conversions import OpsetReach
from tests.unit.rules.making import make_model

REACH = OpsetReach(
    lowest=13,
    below="no adapter leads to an older version of LayerNormalization",
    highest=21,
    above="no adapter leads to a newer version of Fancy",
)


def plan_of(opset, *, runtime="1.31.1", **facts):
    return planner.plan(matrix.from_options(runtime=runtime, opset=opset), make_model(**facts))


def opset_of(opset, *, runtime="1.31.1", **facts):
    return plan_of(opset, runtime=runtime, **facts).blocks[0].arms[0].spec.recipe.opset


@pytest.mark.parametrize(
    ("wanted", "runtime", "measured"),
    [
        ("as-is", "1.31.1", "as-is"),
        ("17", "1.31.1", "as-is"),
        ("21", "1.31.1", 21),
        ("max-of-runtime", "1.31.1", 26),
        ("max-of-runtime", "1.20.1", 21),
    ],
)
def test_a_point_is_converted_to_what_it_asks_for(wanted, runtime, measured):
    assert opset_of(wanted, runtime=runtime) == measured


def test_the_newest_of_a_runtime_never_converts_down():
    assert opset_of("max-of-runtime", runtime="1.20.1", opsets={"": 21}) == "as-is"


@pytest.mark.parametrize(
    ("facts", "runtime"),
    [
        ({"opsets": {"": 17}, "ir_version": 13}, "1.20.1"),
        ({"opsets": {"": 17, "ai.onnx.ml": 5}, "unused_opsets": ("ai.onnx.ml",)}, "1.15.0"),
        ({"opsets": {"": 17, "ai.onnx.ml": 5}, "unused_opsets": ("ai.onnx.ml",), "ir_version": 14}, "1.15.0"),
    ],
)
def test_stamps_are_put_in_order_where_that_alone_makes_the_model_loadable(facts, runtime):
    assert opset_of("17", runtime=runtime, **facts) == 17


def test_a_model_as_is_is_never_put_in_order():
    assert not plan_of("as-is", runtime="1.20.1", opsets={"": 17}, ir_version=13).blocks


def test_stamps_in_order_do_not_help_a_model_whose_operators_are_too_new():
    (refused,) = plan_of("as-is", runtime="1.15.0", opsets={"": 22}, ir_version=14).refused
    assert (refused.reason.code, refused.spec.recipe.opset) == (ReasonCode.OPSET_TOO_NEW, "as-is")


def test_a_conversion_also_lowers_the_ir_version_so_a_high_one_is_no_refusal():
    assert opset_of("21", runtime="1.20.1", opsets={"": 23, "ai.onnx.ml": 9}, unused_opsets=("ai.onnx.ml",),
                    ir_version=14) == 21  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            "12",
            "Opset 17 cannot be converted to 12: no adapter leads to an older version of LayerNormalization. "
            "Export the model with opset 12 instead.",
        ),
        (
            "22",
            "Opset 17 cannot be converted to 22: no adapter leads to a newer version of Fancy. "
            "Export the model with opset 22 instead.",
        ),
    ],
)
def test_the_plan_names_the_operator_that_stops_a_conversion(wanted, words):
    (refused,) = plan_of(wanted, opset_reach=REACH).refused
    assert (refused.reason.code, refused.reason.text) == (ReasonCode.VARIANT_IMPOSSIBLE, words)
    assert opset_of("13", opset_reach=REACH) == 13
    assert opset_of("21", opset_reach=REACH) == 21


def test_max_of_runtime_beyond_what_can_be_converted_is_refused_too():
    (refused,) = plan_of("max-of-runtime", opset_reach=REACH).refused
    assert "cannot be converted to 26" in refused.reason.text


def test_what_is_not_known_is_tried():
    assert opset_of("9", opset_reach=OpsetReach(highest=26)) == 9
