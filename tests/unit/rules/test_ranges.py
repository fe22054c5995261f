"""Lists of releases as people write them."""

import pytest

from farm.rules.runtimes.ranges import RangeProblem, parse_versions

PUBLISHED = ["1.15.0", "1.15.1", "1.20.0", "1.20.1", "1.30.0", "1.31.0", "1.31.1"]


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("all", PUBLISHED),
        ("1.15..1.20", PUBLISHED[:4]),
        ("1.15.1..1.20.0", ["1.15.1", "1.20.0"]),
        ("1.20.1..1.20", ["1.20.1"]),
        ("1.31..", ["1.31.0", "1.31.1"]),
        ("..1.15.0", ["1.15.0"]),
        ("1.31.1, 1.15.0", ["1.15.0", "1.31.1"]),
        ("1.30..1.31,1.31.0", ["1.30.0", "1.31.0", "1.31.1"]),
    ],
)
def test_releases_are_named_in_order_and_once(text: str, versions: list[str]) -> None:
    assert parse_versions(text, PUBLISHED) == versions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no release"),
        (",", "names no release"),
        ("1.17.2", "Unknown release '1.17.2'"),
        ("1.31..1.15", "swap its ends"),
        ("2..3", "published are 1.15.0 to 1.31.1"),
        ("a..b", "write it like 1.15..1.31"),
        ("1.15..9999999999", "write it like"),
    ],
)
def test_what_names_no_release_is_said_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(RangeProblem) as raised:
        parse_versions(text, PUBLISHED)
    assert words in str(raised.value)


def test_nothing_published_is_said() -> None:
    with pytest.raises(RangeProblem, match="published are none"):
        parse_versions("1.15..1.31", [])
