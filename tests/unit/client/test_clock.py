"""The clock of onnxfarm.testing."""

import pytest

from onnxfarm.testing import Clock


def test_time_passes_when_it_is_told_to_and_pauses_are_kept() -> None:
    clock = Clock(now=5.0)
    clock.sleep(2.5)
    clock.advance(0.5)
    assert (clock(), clock.ns(), clock.pauses) == (8.0, 8_000_000_000, [2.5])


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        Clock().advance(-1.0)
