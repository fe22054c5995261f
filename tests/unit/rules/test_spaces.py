"""The usual spaces of settings, by what a provider runs on."""

from farm.rules.matrices.matrix import parse
from farm.rules.matrices.points import expand
from farm.rules.matrices.spaces import default_space


def test_the_usual_space_begins_with_what_one_has_without_choosing() -> None:
    points = expand(default_space(["cpu"], cores=8)).points
    assert (points[0].labels["threads"], points[0].labels["precision"]) == ("8", "fp32")
    assert [point.labels["threads"] for point in points if point.labels["session"] == "spinning off"] == 2 * [*"842"]
    assert {point.labels["threads"] for point in points} == {*"8421"}
    assert len(points) == 2 * (3 * 4 + 3)
    assert len(expand(default_space(["cpu"], cores=1)).points) == 6
    space = default_space(["cpu", "cuda"], cores=2, beside=parse({"batch": [1, 8], "tolerance": {"y": "1e-2"}}))
    assert "y" in space.tolerances
    two = expand(space).points
    assert len(two) == 2 * (14 + 4)
    assert {point.labels["precision"] for point in two if "CUDA" in point.labels["provider"]} == {"fp32", "fp16"}
