"""Colours of the stylesheet: the darkest step of a heat map is the largest in both themes, and words are read on it."""

import re
from pathlib import Path

import pytest

from dashboard.figures import theme

STYLESHEET = (Path(theme.__file__).parents[1] / "static/dashboard/farm.css").read_text()
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLESHEET)
}
SCALES = {
    "magnitudes": [f"ramp-{step}" for step in range(1, 6)],
    "faster": ["equal", *(f"faster-{step}" for step in range(1, 4))],
    "slower": ["equal", *(f"slower-{step}" for step in range(1, 4))],
}
THEMES = {"light": 0, "dark": 1}


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme_name", THEMES)
@pytest.mark.parametrize("scale", SCALES)
def test_the_darkest_step_of_a_heat_map_is_the_largest_in_both_themes(scale: str, theme_name: str) -> None:
    steps = [luminance(TOKENS[name][THEMES[theme_name]]) for name in SCALES[scale]]
    assert steps == sorted(steps, reverse=True)
    assert len(set(steps)) == len(steps)


@pytest.mark.parametrize("theme_name", THEMES)
def test_words_can_be_read_on_every_step(theme_name: str) -> None:
    which = THEMES[theme_name]
    for name in {step for scale in SCALES.values() for step in scale}:
        assert contrast(TOKENS["ink"][which], TOKENS[name][which]) >= 4.5, name


@pytest.mark.parametrize("theme_name", THEMES)
def test_series_stand_out_from_the_paper_and_from_each_other(theme_name: str) -> None:
    which = THEMES[theme_name]
    series = [TOKENS[f"series-{number}"][which] for number in range(1, theme.SLOTS + 1)]
    assert len(set(series)) == theme.SLOTS
    for colour in series:
        assert contrast(colour, TOKENS["paper"][which]) >= 3.0, colour


def test_series_colours_are_left_to_releases_providers_and_precisions() -> None:
    assert "--series-" not in STYLESHEET[STYLESHEET.index("/* frame */") :]
