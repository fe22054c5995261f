"""What to try next with an 8-bit variant."""

from dataclasses import dataclass

import pytest

from farm.rules.quality.variant_advice import advise

GIVEN = {"activation": "uint8", "calibration-data": "d" * 64}


@dataclass(frozen=True)
class Layer:
    node: str
    model_db: float | None


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (None, []),
        (99, ["Give more calibration data: 99 samples are few, take at least 100, better 500."]),
        (499, ["500 calibration samples or more give steadier ranges than 499."]),
        (500, []),
    ],
)
def test_few_samples_are_said(samples, words):
    assert advise("int8-qdq", GIVEN, samples=samples) == words


def test_random_samples_are_said_before_everything_else():
    said = advise("int8-qdq", {"calibration-data": "random"}, samples=None, layers=[Layer("a", 3.0)])
    assert said[0].startswith("Give calibration data with the model")
    assert len(said) > 1


def test_dynamic_quantisation_reads_no_samples():
    assert advise("int8-dynamic", {}, samples=None) == []


def test_weak_layers_lead_to_recipes_that_can_be_typed():
    layers = [Layer("conv1", 4.0), Layer("conv1", 5.0), Layer("", 6.0), Layer("conv2", 19.9), Layer("conv3", 40.0)]
    said = advise("int8-qdq", GIVEN, samples=500, layers=layers)
    assert said[0].startswith("Try int8-qdq:activation=uint8:per-channel: ")
    assert said[1].startswith("Try calibration=percentile")
    assert said[2].startswith("Try int8-qdq:activation=uint8:exclude-nodes=conv1+conv2: under 20 dB")


def test_what_is_done_already_is_not_advised_again():
    options = {**GIVEN, "per-channel": "true", "calibration": "entropy", "exclude-nodes": "conv0"}
    (said,) = advise("int8-qdq", options, samples=500, layers=[Layer("conv1", 4.0)])
    assert "exclude-nodes=conv0+conv1" in said


@pytest.mark.parametrize(
    ("precision", "options", "sets", "is_advised"),
    [
        ("int8-qdq", GIVEN, ("avx", "avx2"), True),
        ("int8-dynamic", {}, ("avx2",), True),
        ("int8-dynamic", {}, ("avx2", "avx512f", "avx512_vnni"), False),
        ("int8-dynamic", {}, ("avx2", "avx_vnni"), False),
        ("int8-dynamic", {}, ("neon",), False),
        ("int8-dynamic", {"weight": "uint8"}, ("avx2",), False),
        ("int8-qdq", {**GIVEN, "activation": "int8"}, ("avx2",), False),
        ("int8-qdq", {**GIVEN, "reduce-range": "true"}, ("avx2",), False),
        ("fp16", {}, ("avx2",), False),
    ],
)
def test_a_processor_without_vnni_wants_a_reduced_range(precision, options, sets, is_advised):
    said = advise(precision, options, samples=500, instruction_sets=sets)
    assert len(said) == int(is_advised)
    assert all("reduce-range: the processor that measured it has no VNNI" in sentence for sentence in said)


def test_good_layers_and_names_that_no_list_can_hold_are_left_alone():
    assert advise("int8-qdq", GIVEN, samples=500, layers=[Layer("conv1", 20.0), Layer("conv2", None)]) == []
    said = advise("int8-dynamic", {"per-channel": "true"}, samples=None, layers=[Layer("a,b", 1.0)])
    assert said == []
