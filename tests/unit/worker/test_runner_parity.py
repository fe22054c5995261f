"""Differences of one output against its reference."""

import numpy as np
import pytest

from worker.runner import parity


def compare(value: object, reference: object, *, atol: float = 1e-5, rtol: float = 1e-4) -> dict[str, object]:
    return parity.compare_output("y", np.asarray(value), np.asarray(reference), atol=atol, rtol=rtol)


def test_equal_outputs_have_no_difference() -> None:
    found = compare([1.0, -2.0, 0.0], [1.0, -2.0, 0.0])
    assert (found["max_abs"], found["max_rel"], found["rmse"], found["violations"]) == (0.0, 0.0, 0.0, 0)
    assert found["cosine"] == pytest.approx(1.0)


def test_an_element_beyond_absolute_and_relative_tolerance_is_a_violation() -> None:
    found = compare([1.0, 10.01, 0.0], [1.0, 10.0, 0.001])
    assert found["violations"] == 2
    assert found["max_abs"] == pytest.approx(0.01)
    assert found["max_rel"] == pytest.approx(1.0)


def test_relative_differences_are_taken_where_the_reference_is_not_zero() -> None:
    assert compare([0.5], [0.0])["max_rel"] is None


def test_nan_where_the_reference_has_a_number_is_a_violation_and_where_both_have_it_is_none() -> None:
    found = compare([np.nan, np.nan, 1.0], [np.nan, 2.0, 1.0])
    assert (found["nan_count"], found["violations"]) == (2, 1)
    assert found["max_abs"] == 0.0


def test_infinity_must_have_the_same_sign() -> None:
    found = compare([np.inf, -np.inf], [np.inf, np.inf])
    assert (found["inf_count"], found["violations"]) == (2, 1)


def test_nothing_finite_leaves_no_difference_to_tell() -> None:
    found = compare([np.nan], [1.0])
    assert found["violations"] == 1
    assert "max_abs" not in found


def test_another_shape_is_told_with_both_shapes() -> None:
    found = compare(np.zeros((2, 3)), np.zeros((3, 2)))
    assert (found["shape"], found["reference_shape"], found["violations"]) == ([2, 3], [3, 2], 6)


def test_whole_numbers_and_text_are_compared_exactly() -> None:
    assert compare(np.array([2**60 + 1]), np.array([2**60]))["violations"] == 1
    assert compare(np.array([1, 2]), np.array([1, 3]))["violations"] == 1
    assert compare(np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object))["violations"] == 1


def test_half_precision_is_compared_with_single_precision() -> None:
    found = compare(np.array([1.0, 2.0], dtype=np.float16), np.array([1.0, 2.001], dtype=np.float32), atol=1e-2)
    assert (found["dtype"], found["violations"]) == ("float16", 0)


def test_large_values_keep_a_finite_cosine() -> None:
    assert compare([1e300, 1e300], [1e300, 1e300])["cosine"] == pytest.approx(1.0)
    assert compare([0.0, 0.0], [0.0, 0.0])["cosine"] == 1.0
    assert compare([0.0, 0.0], [1.0, 0.0])["cosine"] is None


def test_scores_agree_on_their_largest_class() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    assert compare(scores, np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))["top1_agreement"] == 0.75
    assert compare([1.0, 2.0], [1.0, 2.0])["top1_agreement"] is None


def test_bits_are_compared_for_a_repeat() -> None:
    nan = np.array([np.nan])
    assert parity.are_bit_equal(nan, nan.copy())
    assert not parity.are_bit_equal(np.array([0.0]), np.array([-0.0]))
    assert parity.are_bit_equal([{"a": 1}], [{"a": 1}])


def test_an_output_without_reference_or_that_is_no_tensor_keeps_its_facts() -> None:
    assert parity.compare_output("y", np.zeros(3), None, atol=0, rtol=0)["elements"] == 3
    # the feed hands on the type's name of a value that is no tensor
    told = parity.compare_output("y", "seq(map(int64,tensor(float)))", np.zeros(3), atol=0, rtol=0)
    assert told["dtype"] == "seq(map(int64,tensor(float)))"


def test_the_spread_of_a_tensor_leaves_out_what_is_not_finite_and_counts_it() -> None:
    found = parity.summarise_values(np.asarray([1.0, 3.0, np.nan, np.inf], np.float32))
    assert (found["minimum"], found["maximum"], found["mean"], found["std"]) == (1.0, 3.0, 2.0, 1.0)
    assert (found["nan_count"], found["inf_count"]) == (1, 1)
    assert parity.summarise_values(np.asarray([], np.float32)) == {"nan_count": 0, "inf_count": 0}


def test_the_furthest_element_is_told_with_both_values() -> None:
    found = parity.locate_largest_difference(
        np.asarray([[0, 7], [2, 3]], np.uint8), np.asarray([[0, 1], [2, 9]], np.uint8)
    )
    assert found == {"index": [0, 1], "candidate": 7.0, "reference": 1.0}
    assert parity.locate_largest_difference(np.zeros(2), np.zeros(3)) is None
    assert parity.locate_largest_difference(np.asarray([np.nan]), np.asarray([1.0])) is None


def test_the_scale_is_that_of_what_counts() -> None:
    assert parity.compute_scale(np.array([0.1, -0.2])) == 1.0
    assert parity.compute_scale(np.array([3e300, np.nan, -4e300, np.inf])) == pytest.approx(5e300 / 2**0.5)
    assert parity.compute_scale(np.array([-1e9, -1e9, 30.0, 40.0])) == pytest.approx(50 / 2**0.5)
    assert parity.compute_scale(np.array([])) == 1.0


def test_what_somebody_gave_is_absolute() -> None:
    value, reference = np.array([2000.0, 0.01]), np.array([2000.0, 0.0])
    told = parity.compare_output("y", value, reference, atol=1e-5, rtol=0.0)
    given = parity.compare_output("y", value, reference, atol=1e-5, rtol=0.0, is_absolute=True)
    assert (told["violations"], given["violations"]) == (0, 1)
