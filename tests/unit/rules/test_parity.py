"""The verdict over outputs, at and beyond each preset's bounds."""

from typing import Any

import pytest

from farm.contract.blocks import Tolerance
from farm.contract.reports import OutputParity
from farm.rules.quality import parity


def output(**facts: Any) -> OutputParity:
    known: dict[str, Any] = {
        "name": "y", "dtype": "float32", "shape": (4, 10), "reference_shape": (4, 10), "elements": 40,
        "max_abs": 1e-7, "cosine": 1.0, "violations": 0,
    }  # fmt: skip
    return OutputParity(**{**known, **facts})


@pytest.mark.parametrize(
    ("precision", "preset"),
    [
        ("fp32", parity.FP32),
        ("fp16", parity.FP16),
        ("int8-dynamic", parity.INT8),
        ("int8-qdq", parity.INT8),
        ("int4", parity.INT4),
    ],
)
def test_each_precision_has_its_preset(precision: Any, preset: parity.Preset) -> None:
    assert parity.preset_for(precision) == preset


def test_a_node_is_told_the_element_wise_part() -> None:
    assert (parity.FP32.tolerance.atol, parity.FP32.tolerance.rtol) == (1e-5, 1e-4)
    assert parity.INT8.tolerance.atol > 1e20


def test_outputs_within_tolerance_pass() -> None:
    judged = parity.judge([output(), output(name="z")], parity.FP32)
    assert judged == parity.Judgement(
        "pass", "All 2 outputs are within atol 1e-05 × scale + rtol 0.0001 of the reference."
    )


def test_one_value_beyond_tolerance_fails_and_says_how_far() -> None:
    judged = parity.judge([output(violations=3, max_abs=0.25), output(name="z", violations=1)], parity.FP32)
    assert judged.verdict == "fail"
    assert (
        "3 of 40 values are beyond atol 1e-05 × scale + rtol 0.0001 of the reference, largest difference 0.25"
        in judged.text
    )
    assert "(and 1 more of 2 outputs)." in judged.text


def test_nan_where_the_reference_has_none_is_named() -> None:
    judged = parity.judge([output(violations=2, max_abs=None, nan_count=2)], parity.FP32)
    assert judged.text.endswith("of the reference, 2 NaN.")


@pytest.mark.parametrize("preset", [parity.FP32, parity.INT8])
def test_outputs_of_nothing_but_nan_show_nothing(preset: parity.Preset) -> None:
    void = output(nan_count=40, max_abs=None, cosine=None)
    judged = parity.judge([void], preset)
    assert judged.verdict == "not_measured"
    assert "all 40 values of 'y' are NaN, here and in the reference" in judged.text
    wrong = output(name="z", violations=1)
    assert parity.judge([void, wrong], parity.FP32).verdict == "fail"


def test_whole_numbers_must_be_equal() -> None:
    judged = parity.judge([output(dtype="int64", violations=1)], parity.FP16)
    assert judged.text == "Output 'y': 1 of 40 values differ from the reference."


def test_another_shape_fails() -> None:
    judged = parity.judge([output(shape=(4, 9), violations=36)], parity.FP32)
    assert judged.text == "Output 'y' has the shape [4, 9], not [4, 10]."


def test_an_output_may_have_a_preset_of_its_own() -> None:
    judged = parity.judge([output(cosine=0.995, violations=0)], parity.FP32, by_output={"y": parity.INT8})
    assert judged.verdict == "pass"


@pytest.mark.parametrize(
    ("facts", "verdict", "words"),
    [
        ({"cosine": 0.9901}, "pass", "lowest cosine 0.99010"),
        ({"cosine": 0.9899}, "fail", "cosine to the reference is 0.9899, below 0.99"),
        ({"cosine": 0.98999991}, "fail", "cosine to the reference is 0.9899999, below 0.99"),
        ({"cosine": None}, "fail", "one of the two is all zeros"),
        ({"top1_agreement": 0.99}, "pass", "close to the reference"),
        ({"top1_agreement": 0.98}, "fail", "agrees with the reference in 98.00% of its choices"),
        ({"violations": 1}, "fail", "not finite"),
        ({"dtype": "int64", "violations": 1, "elements": 1000, "cosine": None}, "pass", "close"),
        ({"dtype": "int64", "violations": 11, "elements": 1000}, "fail", "98.90%"),
        ({"elements": 0, "cosine": None, "shape": (0,), "reference_shape": (0,)}, "pass", "close"),
    ],
)
def test_quantised_outputs_keep_direction_and_choice(facts: dict[str, Any], verdict: str, words: str) -> None:
    judged = parity.judge([output(**facts)], parity.INT8)
    assert judged.verdict == verdict
    assert words in judged.text


def test_without_a_reference_nothing_is_judged() -> None:
    assert parity.judge([output(reference_shape=None)], parity.FP32).verdict == "not_measured"


def test_a_reference_output_nobody_computed_fails() -> None:
    judged = parity.judge([output()], parity.FP32, missing=["probabilities"])
    assert judged.text == "The output 'probabilities' of the reference was not computed."


@pytest.mark.parametrize(
    ("precision", "uploaded", "preset"),
    [
        ("fp32", "fp16", parity.FP16),
        ("fp32", "bf16", parity.BF16),
        ("fp32", "int8 QDQ", parity.STEPS),
        ("fp32", "fp32", parity.FP32),
        ("fp16", "fp32", parity.FP16),
        ("fp16", "bf16", parity.BF16),
        ("int8-dynamic", "fp16", parity.INT8),
    ],
)
def test_a_model_that_came_in_16_bits_is_judged_by_these(precision: Any, uploaded: str, preset: parity.Preset) -> None:
    assert parity.preset_for(precision, uploaded) == preset


def test_an_output_of_16_bits_is_judged_by_its_own_type_unless_somebody_gave_a_tolerance() -> None:
    half, whole = output(dtype="float16", violations=1), output(name="z")
    assert parity.judge([half, whole], parity.FP32).text.count(parity.FP16.elementwise_bound) == 1
    own = parity.presets_from_tolerances({"y": Tolerance(atol=0.5, rtol=0.0)})
    assert "beyond atol 0.5 + rtol 0 of" in parity.judge([half, whole], parity.FP32, by_output=own).text
    assert parity.preset_for_dtype(parity.INT8, "float16") == parity.INT8


@pytest.mark.parametrize(
    ("facts", "preset", "verdict"),
    [
        ({"max_abs": 1.0}, parity.STEPS, "pass"),
        ({"max_abs": 2.0}, parity.STEPS, "fail"),
        ({"max_abs": 1.0}, parity.FP32, "fail"),
        ({"max_abs": None}, parity.STEPS, "fail"),
        ({"max_abs": 1.0, "dtype": "int64"}, parity.STEPS, "fail"),
    ],
)
def test_whole_numbers_of_few_bits_may_be_a_step_off(
    facts: dict[str, Any], preset: parity.Preset, verdict: str
) -> None:
    assert parity.judge([output(**{"dtype": "uint8", "violations": 9, **facts})], preset).verdict == verdict
