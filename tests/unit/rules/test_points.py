"""Expansion: the product, exclude, then include, as GitHub Actions does it."""

from hypothesis import given
from hypothesis import strategies as st

from farm.rules.matrices import matrix
from farm.rules.matrices.points import expand


def points(plain):
    return expand(matrix.parse(plain)).points


def labels(plain):
    return [point.labels for point in points(plain)]


def test_the_product_is_taken_in_order_and_the_last_axis_varies_fastest():
    assert labels({"batch": [1, 8], "threads": [1, 2]}) == [
        {"batch": "1", "threads": "1"},
        {"batch": "1", "threads": "2"},
        {"batch": "8", "threads": "1"},
        {"batch": "8", "threads": "2"},
    ]


def test_equal_values_are_told_apart_by_their_positions():
    first, second = points({"runtime": ["1.31.1", "1.31.1"]})
    assert first.values == second.values
    assert (first.positions, second.positions) == ({"runtime": 0}, {"runtime": 1})


def test_a_point_is_excluded_when_all_keys_of_an_entry_match():
    expansion = expand(matrix.parse({"batch": [1, 8], "threads": [1, 2], "exclude": [{"batch": 8, "threads": 2}]}))
    assert (len(expansion.points), expansion.excluded) == (3, 1)
    expansion = expand(matrix.parse({"batch": [1, 8], "threads": [1, 2], "exclude": [{"batch": 8}]}))
    assert (len(expansion.points), expansion.excluded) == (2, 2)


def test_an_include_adds_new_axes_to_the_points_it_fits():
    plain = {"batch": [1, 8], "include": [{"batch": 8, "threads": 4}]}
    assert labels(plain) == [{"batch": "1"}, {"batch": "8", "threads": "4"}]


def test_an_include_without_declared_axes_is_added_to_every_point():
    assert labels({"batch": [1, 8], "include": [{"threads": 4}]}) == [
        {"batch": "1", "threads": "4"},
        {"batch": "8", "threads": "4"},
    ]


def test_an_include_that_would_change_a_declared_value_is_a_point_of_its_own():
    *_, alone = points({"batch": [1, 8], "threads": [1], "include": [{"batch": 32}]})
    assert alone.labels == {"batch": "32"}
    assert alone.positions == {"batch": 2}


def test_a_later_include_overrides_what_an_earlier_one_added():
    plain = {"batch": [1], "include": [{"threads": 2}, {"threads": 4}]}
    (point,) = points(plain)
    assert point.labels == {"batch": "1", "threads": "4"}
    assert point.positions == {"batch": 0, "threads": 1}


def test_an_include_is_not_added_to_a_point_that_another_include_made():
    assert labels({"batch": [1], "include": [{"batch": 8}, {"batch": 8, "threads": 2}]}) == [
        {"batch": "1"},
        {"batch": "8"},
        {"batch": "8", "threads": "2"},
    ]


def test_an_include_that_fits_an_a_a_pair_is_added_to_both():
    both = points({"runtime": ["1.31.1", "1.31.1"], "include": [{"runtime": "1.31.1", "threads": 2}]})
    assert [point.positions for point in both] == [{"runtime": 0, "threads": 0}, {"runtime": 1, "threads": 0}]


def test_includes_alone_make_points():
    assert labels({"include": [{"batch": 1}, {"batch": 8}]}) == [{"batch": "1"}, {"batch": "8"}]


def test_a_matrix_without_axes_is_one_point_of_defaults():
    assert labels({"budget": "quick"}) == [{}]


def test_labels_say_options_and_sets_in_short():
    (point,) = points(
        {
            "provider": [{"name": "openvino", "options": {"device_type": "CPU"}}],
            "precision": [{"precision": "int8-qdq", "options": {"per-channel": "true"}}],
            "session": [{"name": "quiet", "spinning": False}],
            "shapes": [{"sequence": 8}],
            "hardware": ["x86"],
            "opset": [21],
        }
    )
    assert point.labels == {
        "provider": "OpenVINOExecutionProvider (device_type=CPU)",
        "precision": "int8-qdq:per-channel",
        "session": "quiet",
        "shapes": "sequence=8",
        "hardware": "x86",
        "opset": "21",
    }


def test_no_shapes_are_called_default():
    assert labels({"shapes": [{}]}) == [{"shapes": "default"}]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(st.integers(1, 6), max_size=3),
)
def test_every_point_of_the_product_is_kept_or_excluded_once(batches, threads, includes):
    plain = {
        "batch": batches,
        "threads": threads,
        "exclude": [{"batch": batches[0]}],
        "include": [{"batch": number} for number in includes],
    }
    expansion = expand(matrix.parse(plain))
    alone = sum(number not in batches or number == batches[0] for number in includes)
    assert len(expansion.points) + expansion.excluded == len(batches) * len(threads) + alone
    kept = [tuple(point.positions.items()) for point in expansion.points if "threads" in point.positions]
    assert len(kept) == len(set(kept))
