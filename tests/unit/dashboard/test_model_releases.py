"""What leads of the newest release over many models."""

from typing import Any

import pytest

from dashboard.reading.model_releases import Grid, make_grid
from farm.alerts.selectors.pages import ReleaseRow

SLOWER = {"ratio": 1.19, "low": 1.16, "high": 1.22}
EQUAL = {"ratio": 1.0, "low": 0.995, "high": 1.005}


def row(name: str = "encoder", **how: Any) -> ReleaseRow:
    known: dict[str, Any] = {
        "model": len(name), "name": name, "release": "1.32.0", "watch": 1, "reference": "1.29.0", "series": "s1",
        "node": "bench-1", "label": "CPU", "outcome": "quiet", **SLOWER, **how,
    }  # fmt: skip
    return ReleaseRow(**known)


def told(*rows: ReleaseRow) -> tuple[str, str, list[str]]:
    found = make_grid(rows)
    assert isinstance(found, Grid)
    signs = [line.fields[-1].sign for line in found.map.rows]
    return found.headline, found.because, [sign.word for sign in signs if sign is not None]


@pytest.mark.parametrize(
    ("rows", "headline", "because", "words"),
    [
        # its interval lies above zero, and its round decided nothing
        (
            [row(outcome="undecided")],
            "Whether encoder is slower with 1.32.0 is undecided",
            "1 of 1 model undecided",
            ["undecided"],
        ),
        (
            [row("a", **EQUAL), row(low=0.9)],
            "Whether encoder is slower with 1.32.0 is undecided",
            "1 of 2 models undecided",
            ["undecided", "equal"],
        ),
        ([row(**EQUAL)], "No model is slower with 1.32.0", "1 model measured", ["equal"]),
        (
            [row("a", outcome="undecided"), row(), row("other", **EQUAL)],
            "encoder is 19 % slower with 1.32.0",
            "1 of 3 models slower or wrong with 1.32.0, 1 undecided",
            ["19 % slower", "undecided", "equal"],
        ),
    ],
)
def test_only_what_was_decided_is_no_slower(
    rows: list[ReleaseRow], headline: str, because: str, words: list[str]
) -> None:
    """ "No model is slower" stood above a model that was undecided and 19 % slower."""
    assert told(*rows) == (headline, because, words)
