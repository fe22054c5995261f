"""Values by what they share."""

from farm.base.grouping import group_by


def test_values_of_one_key_stand_together_wherever_they_came() -> None:
    assert group_by(["bb", "a", "cc", "d"], len) == {2: ["bb", "cc"], 1: ["a", "d"]}
    assert list(group_by(["bb", "a"], len)) == [2, 1]
    assert group_by([], len) == {}
