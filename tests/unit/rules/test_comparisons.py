"""A comparison in words."""

from dataclasses import replace

import pytest

from farm.rules.comparing import comparisons
from farm.rules.comparing.comparisons import Comparison

ONE = Comparison(
    verdict="slower",
    ratio=1.05234,
    ci_low=1.0411,
    ci_high=1.063,
    ci_level=0.95,
    rounds_used=8,
    p=1.234e-5,
    margin=0.02,
    smallest_detectable=0.0312,
    rounds_needed=8,
    test="paired t",
    p_total=6e-5,
)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "slower: new / old = 1.052 (95 % interval 1.041 to 1.063, 8 rounds, paired t p = 1.2e-05), beyond"),
        ({"verdict": "equal"}, ", within ± 2 %."),
        (
            {"verdict": "undecided", "rounds_needed": 16},
            "under 3.12 % cannot be detected yet, about 16 rounds in all would decide.",
        ),
        ({"verdict": "undecided", "rounds_needed": None}, "no number of rounds within the maximum will decide."),
        ({"verdict": "undecided", "reason": "Because."}, ". Because."),
        ({"verdict": "undecided", "rounds_used": 6}, "). 6 rounds decide nothing: a verdict takes at least 8."),
    ],
)
def test_a_sentence_gives_the_verdict_and_what_it_rests_on(changed: dict[str, object], told: str) -> None:
    assert told in comparisons.describe_comparison(replace(ONE, **changed))


def test_what_is_not_comparable_keeps_its_figures_and_says_why() -> None:
    told = comparisons.mark_not_comparable(ONE, reasons=["The driver differs.", "So does the governor."])
    assert (told.verdict, told.ratio, told.rounds_needed) == ("not comparable", ONE.ratio, None)
    assert comparisons.describe_comparison(told).endswith("The driver differs. So does the governor.")
