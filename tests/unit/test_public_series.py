"""How level shifts are scored on series that people labelled."""

import pytest

from farm.rules.comparing import changepoints
from tests.bench import public_series
from tests.bench.public_series import PublicSeries

SERIES = {one.name: one for one in public_series.public_series()}


def found(name: str) -> list[int]:
    return [point.index for point in changepoints.find_changepoints(SERIES[name].values)]


# from the docstrings of analysis/scripts/metrics.py of TCPDBench
@pytest.mark.parametrize(
    ("labels", "indices", "value"),
    [
        ([[10, 20], [11, 20], [10], [0, 5]], [10, 20], 1.0),
        ([[], [10], [50]], [10], 0.9090909090909091),
        ([[], [10], [50]], [], 0.8),
    ],
)
def test_f1_is_the_published_one(labels: list[list[int]], indices: list[int], value: float) -> None:
    assert public_series.f1(labels, indices) == pytest.approx(value)


@pytest.mark.parametrize(
    ("labels", "indices", "value"),
    [
        ([[10, 20], [10], [0, 5]], [10, 20], 0.7962962962962963),
        ([[], [10], [40]], [10], 0.7954144620811286),
        ([[], [10], [40]], [], 0.8189300411522634),
    ],
)
def test_covering_is_the_published_one(labels: list[list[int]], indices: list[int], value: float) -> None:
    assert public_series.covering(labels, indices, rows=45) == pytest.approx(value)


def test_one_report_counts_for_one_mark() -> None:
    assert public_series.f1([[10, 14]], [12]) == pytest.approx(2 * (2 / 3) / (1 + 2 / 3))


@pytest.mark.parametrize("one", SERIES.values(), ids=SERIES)
def test_a_method_that_finds_nothing_scores_here_as_it_was_published(one: PublicSeries) -> None:
    assert public_series.f1(one.labels, []) == pytest.approx(one.published["f1"]["zero"], abs=1e-4)
    covering = public_series.covering(one.labels, [], rows=len(one.values))
    assert covering == pytest.approx(one.published["covering"]["zero"], abs=1e-4)


def test_every_series_names_a_licence_that_the_page_beside_it_has() -> None:
    page = (public_series.FILE.parent / "README.md").read_text()
    assert {one.licence for one in SERIES.values()} == {"MIT", "CC0", "CC BY 4.0"}
    named = page.replace(
        "quality_control_1 to quality_control_5", "".join(f"quality_control_{n} " for n in range(1, 6))
    )
    assert [name for name in SERIES if name not in named] == []


def test_quality_control_is_found_better_than_by_any_published_method() -> None:
    control = [one for name, one in SERIES.items() if name.startswith("quality_control_")]
    ours = public_series.means({name: public_series.f1(one.labels, found(name)) for name, one in SERIES.items()})
    best = max(means["quality control"] for means in public_series.published(list(SERIES.values())).values())
    assert len(control) == 5
    assert ours["quality control"] > 0.98 > best


def test_a_bank_account_that_salaries_fill_and_spending_empties_has_no_level_shift() -> None:
    assert found("bank") == []
