"""Values by what they share."""

from farm.base.grouping import grouped


def test_values_of_one_key_stand_together_wherever_they_came() -> None:
    assert grouped(["bb", "a", "cc", "d"], len) == {2: ["bb", "cc"], 1: ["a", "d"]}
    assert list(grouped(["bb", "a"], len)) == [2, 1]
    assert grouped([], len) == {}
