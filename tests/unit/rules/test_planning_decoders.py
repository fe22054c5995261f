"""Planning of four bits, and of decoders whose attention is grouped."""

import pytest

from farm.contract.cells import Runtime
from farm.rules.matrices import matrix
from farm.rules.planning import planner, refusals
from tests.unit.rules.making import make_model
from tests.unit.rules.test_planning import spec_of


@pytest.mark.parametrize(("runtime", "is_taken"), [("1.17.0", True), ("own-build==0.9", True), ("1.15.1", False)])
def test_four_bits_are_planned_where_a_release_computes_with_them_or_nobody_knows(runtime, is_taken):
    declared = matrix.parse({"precision": ["int4"], "runtime": [runtime]}, allowed=["own-build"])
    assert (not planner.plan(declared, make_model()).refused) is is_taken


GROUPED = {
    "batch": "batch",
    "dims": {"sequence": None, "past": None, "total": None},
    "sizes": {"batch": 1, "sequence": 64, "past": 64, "total": 128},
    "is_grouped": True,
    "inputs": [
        {"name": "input_ids", "dtype": "int64", "shape": ("batch", "sequence"), "fill": "0..999"},
        {"name": "seqlens_k", "dtype": "int32", "shape": ("batch",), "fill": "127"},
        {"name": "past_key_values.0.key", "dtype": "float32", "shape": ("batch", 2, "past", 64), "fill": "normal"},
    ],
}


@pytest.mark.parametrize(
    ("asked", "shapes"),
    [
        ({"batch": "1"}, {"sequence": 64, "past": 64, "total": 128}),
        ({"batch": "4"}, {"sequence": 1, "past": 127, "total": 128}),
        ({"batch": "4", "shapes": [{"sequence": 8}]}, {"sequence": 8, "past": 64, "total": 128}),
    ],
)
def test_a_batch_of_group_query_attention_is_planned_with_sizes_that_it_takes(asked, shapes):
    assert spec_of(asked, **GROUPED).workload.shapes == shapes


def test_a_batch_of_any_other_attention_keeps_its_sizes():
    other = {**GROUPED, "is_grouped": False}
    assert spec_of({"batch": "4"}, **other).workload.shapes == {"sequence": 64, "past": 64, "total": 128}


def test_four_bits_are_not_measured_in_browsers_yet():
    browser = Runtime(distribution="onnxruntime-web", version="1.31.0")
    spec = spec_of({"precision": "int4"}).model_copy(update={"runtime": browser})
    refused = refusals.refuse_int4(spec, refusals.RuleContext(make_model()))
    assert refused.text.startswith("int4 is not measured in browsers yet: leave onnxruntime-web==1.31.0 out")
