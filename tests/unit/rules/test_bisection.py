"""Bisection over published versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.rules.searches.bisection import Answer, Bisection, Outcome
from farm.rules.searches.search import SearchProblem

VERSIONS = [f"1.{minor}.0" for minor in range(15, 32)]


def _search(outcomes: dict[str, Outcome], versions: list[str] = VERSIONS) -> Answer:
    search = Bisection(versions, good=versions[0], bad=versions[-1])
    while (version := search.next()) is not None:
        search.record(version, outcomes[version])
    return search.answer()


def _turning_at(index: int, versions: list[str] = VERSIONS) -> dict[str, Outcome]:
    return {v: Outcome.BAD if i >= index else Outcome.GOOD for i, v in enumerate(versions)}


@given(st.integers(min_value=1, max_value=len(VERSIONS) - 1))
def test_the_first_bad_release_is_found_in_few_probes(index: int) -> None:
    answer = _search(_turning_at(index))
    assert (answer.last_good, answer.first_bad) == (VERSIONS[index - 1], VERSIONS[index])
    assert answer.is_exact
    assert answer.is_monotone
    # the bad end, log2 of 16, and one check on each side
    assert answer.probes <= 1 + 4 + 2


@given(st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=15))
def test_it_always_ends_and_names_a_bad_version(middle: list[Outcome]) -> None:
    versions = [f"1.{minor}.0" for minor in range(len(middle) + 2)]
    outcomes = dict(zip(versions, [Outcome.GOOD, *middle, Outcome.BAD], strict=True))
    answer = _search(outcomes, versions)
    assert outcomes[answer.first_bad] is Outcome.BAD
    assert outcomes[answer.last_good] is Outcome.GOOD


def test_versions_that_cannot_be_judged_are_suspects() -> None:
    outcomes = _turning_at(8)
    outcomes["1.22.0"] = outcomes["1.23.0"] = Outcome.SKIPPED
    answer = _search(outcomes)
    assert answer.suspects == ("1.22.0", "1.23.0", "1.24.0")
    assert not answer.is_exact
    assert "could not be judged" in answer.sentence()


def test_bad_then_fixed_then_bad_again_is_said() -> None:
    outcomes = dict.fromkeys(VERSIONS, Outcome.GOOD)
    for version in (*VERSIONS[3:7], *VERSIONS[14:]):
        outcomes[version] = Outcome.BAD
    answer = _search(outcomes)
    assert not answer.is_monotone
    assert "changed more than once" in answer.sentence()
    assert outcomes[answer.first_bad] is Outcome.BAD


def test_a_good_bad_version_is_refused_in_one_sentence() -> None:
    search = Bisection(VERSIONS, good="1.15.0", bad="1.31.0")
    assert search.next() == "1.31.0"
    with pytest.raises(SearchProblem, match=r"1\.31\.0 was given as bad, but here it is not slower than 1\.15\.0"):
        search.record("1.31.0", Outcome.GOOD)


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("1.31.0", "1.15.0", "swap them"),
        ("1.15.0", "1.15.0", "swap them"),
        ("1.14.0", "1.31.0", "not a published version"),
        ("1.15.0", "2.0", "not a published version"),
    ],
)
def test_a_wrong_question_is_refused(good: str, bad: str, words: str) -> None:
    with pytest.raises(SearchProblem, match=words):
        Bisection(VERSIONS, good=good, bad=bad)


def test_neighbours_need_one_probe_only() -> None:
    answer = _search({"1.30.0": Outcome.GOOD, "1.31.0": Outcome.BAD}, ["1.30.0", "1.31.0"])
    assert answer.probes == 1
    assert answer.sentence() == "1.31.0 is the first bad release; 1.30.0 was still good (1 probe)."
