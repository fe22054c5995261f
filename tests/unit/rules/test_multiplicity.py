"""Benjamini and Hochberg's procedure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from farm.rules.comparing import multiplicity


@pytest.mark.parametrize(
    ("p_values", "holds"),
    [
        ([], []),
        ([0.05], [True]),
        ([0.051], [False]),
        ([0.01, 0.04, 0.03, 0.005], [True] * 4),
        ([0.01, 0.9, 0.02, 0.9], [True, False, True, False]),
        ([0.02, 0.9, 0.9, 0.9], [False] * 4),
    ],
)
def test_a_p_value_holds_by_its_place_among_all(p_values: list[float], holds: list[bool]) -> None:
    assert multiplicity.benjamini_hochberg(p_values) == holds


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_answer_is_that_of_scipy(p_values: list[float], level: float) -> None:
    adjusted = stats.false_discovery_control(p_values)
    clear = np.abs(adjusted - level) > 1e-9
    ours = np.array(multiplicity.benjamini_hochberg(p_values, level))
    assert (ours[clear] == (adjusted <= level)[clear]).all()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        multiplicity.benjamini_hochberg([0.5, wrong])
