"""Facts that differ."""

import pytest

from farm.rules.comparing import confounders


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"governor": "performance"}, {"governor": "powersave"}, ["governor was performance and is powersave."]),
        ({"governor": None}, {"governor": "powersave"}, ["governor was not recorded and is powersave."]),
        ({"more": {"driver": "1"}}, {"more": {"driver": "2"}}, ["more.driver was 1 and is 2."]),
        ({"b": 1, "a": 1}, {}, ["a was 1 and is not recorded.", "b was 1 and is not recorded."]),
        ({"load_1m": 0.1, "temperature_c": 40}, {"load_1m": 3.0}, []),
        ({"cpu_model": "A"}, {"cpu_model": "A", "turbo": None}, []),
    ],
)
def test_each_fact_that_differs_gets_a_sentence(old: dict[str, object], new: dict[str, object], told: list[str]):
    assert confounders.find_confounders(old, new) == told


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [
        ({"cpu_model": "A"}, {"cpu_model": "B"}, True),
        ({"cpu_model": "A", "governor": "x"}, {"cpu_model": "A", "governor": "y"}, False),
        ({"cpu_model": "A"}, {}, False),
        ({"gpus": ["T4"]}, {"gpus": ["L4"]}, True),
    ],
)
def test_other_hardware_is_what_both_sides_state_differently(
    old: dict[str, object], new: dict[str, object], is_other: bool
) -> None:
    assert confounders.is_other_hardware(old, new) is is_other
