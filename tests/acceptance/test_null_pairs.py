"""Pairs of the same thing, measured by the product's own path: how often are they called slower or faster?"""

from pathlib import Path

import pytest

from tests.bench import blocks, real_aa

PAIRS = 20
ALLOWED = 1


@pytest.mark.long
@pytest.mark.timeout(900)
def test_of_twenty_pairs_of_the_same_thing_at_most_one_is_called_slower_or_faster(tmp_path: Path) -> None:
    """Windows of 0.1 s, so that 320 launches fit a test; disturbed launches count, so that no pair lacks a round."""
    with blocks.shortened_windows(), blocks.without_gate():
        place = blocks.Workplace(tmp_path, runtimes=tmp_path / "runtimes")
        lines = [line for number in range(PAIRS) for line in real_aa.measure(place, number, seed=20)]
    assert all(len(line["pairs"]) == real_aa.ROUNDS for line in lines)
    called = [line for line in lines if line["verdict"] in ("slower", "faster")]
    assert len(called) <= ALLOWED, called
