"""Small lines on a model's page."""

import pytest

from dashboard.reading.watched_series import HEIGHT, WIDTH, draw_spark


def spots(ratios: list[float]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (spot.split(",") for spot in draw_spark(ratios).points.split())]


@pytest.mark.parametrize("ratios", [[1.0], [1.24], [1.0, 1.0], [0.5, 2.0] * 200, [1e-9, 1e9]])
def test_a_small_line_stays_in_its_frame(ratios: list[float]) -> None:
    found = spots(ratios)
    assert len(found) >= 2
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in found)
    assert 0 <= float(draw_spark(ratios).level) <= HEIGHT


def test_slower_is_up_and_noise_looks_like_noise() -> None:
    (_, low), (_, high) = spots([1.0, 1.24])
    assert high < low
    (_, first), (_, second) = spots([1.0, 1.001])
    assert abs(first - second) < 1
