"""Narrower matrices, and the order of releases."""

import pytest

from farm.contract.cells import Runtime
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.points import expand, explain_unpairable, narrow_matrix, point_at, replace_runtimes
from farm.rules.runtimes.order import is_downgrade, is_prerelease, release_order


def ort(version: str) -> Runtime:
    return Runtime(distribution="onnxruntime", version=version)


def test_releases_are_ordered_with_candidates_before_their_release() -> None:
    versions = ["1.31.0", "1.9.0", "1.31.0rc2", "1.31.0.dev3", "1.31.1", "1.31.0rc1"]
    assert sorted(versions, key=release_order) == [
        "1.9.0", "1.31.0.dev3", "1.31.0rc1", "1.31.0rc2", "1.31.0", "1.31.1",
    ]  # fmt: skip
    assert [is_prerelease(one) for one in ("1.31.0", "1.31.0rc1", "1.31.0.dev1", "1.31.0+cuda")] == [
        False,
        True,
        True,
        False,
    ]


def test_what_is_no_version_stands_before_every_release_and_a_rebuild_behind_its_own() -> None:
    versions = ["1.22.2.post1", "1.15.0", "", "1.22.2", "0.1"]
    assert sorted(versions, key=release_order) == ["", "0.1", "1.15.0", "1.22.2", "1.22.2.post1"]
    assert not is_prerelease("")


def test_runtimes_stand_in_release_order_and_rules_about_them_go() -> None:
    matrix = matrices.parse(
        {"runtime": ["1.20.1", "1.21.0"], "batch": [1, 8], "exclude": [{"runtime": "1.20.1", "batch": 8}]}
    )
    found = replace_runtimes(matrix, [ort("1.31.1"), ort("1.29.0"), ort("1.31.1")], hardware=["node:a"])
    assert found.axes["runtime"] == (ort("1.29.0"), ort("1.31.1"))
    assert found.axes["hardware"] == ("node:a",)
    assert found.exclude == ()


def test_a_narrowed_matrix_holds_the_points_that_were_asked_for() -> None:
    matrix = matrices.parse(
        {"batch": [1, 8, 16], "precision": ["fp32", "int8-dynamic"], "exclude": [{"batch": 8, "precision": "fp32"}]}
    )
    asked = [{"batch": 0, "precision": 1}, {"batch": 1, "precision": 1}]
    found = narrow_matrix(matrix, asked, runtimes=[ort("1.29.0"), ort("1.31.1")])
    assert len(expand(found).points) == 4
    assert found.exclude == ()
    wider = narrow_matrix(
        matrix, [{"batch": 0, "precision": 0}, {"batch": 1, "precision": 1}], runtimes=[ort("1.29.0")]
    )
    assert len(wider.exclude) == 1
    assert matrices.parse(found.as_plain()) == found


def test_a_point_that_an_include_added_can_be_narrowed_to() -> None:
    matrix = matrices.parse({"batch": [1], "include": [{"batch": 32, "threads": 2}]})
    point = expand(matrix).points[-1]
    found = narrow_matrix(matrix, [point.positions], runtimes=[ort("1.29.0")])
    assert (found.axes["batch"], found.axes["threads"]) == ((32,), (2,))


def test_a_point_that_is_not_there_is_said() -> None:
    with pytest.raises(LookupError, match="no point"):
        point_at(matrices.parse({"batch": [1]}), {"batch": 7})


def test_a_matrix_that_could_compare_no_releases_is_told_why() -> None:
    plain = matrices.parse({"runtime": ["1.29.0", "1.31.1"], "opset": [17]})
    assert explain_unpairable(plain) is None
    glance = matrices.parse({"budget": "glance", "runtime": ["1.29.0", "1.31.1"]})
    assert str(explain_unpairable(glance)).startswith("The budget glance launches each cell once")
    following = matrices.parse({"runtime": ["1.29.0", "1.31.1"], "opset": ["max-of-runtime"]})
    assert str(explain_unpairable(following)).startswith("opset max-of-runtime gives each release a model of its own")


def test_a_release_that_stands_before_the_one_it_is_held_against_goes_back() -> None:
    assert is_downgrade("1.31.1", "1.29.0")
    assert not is_downgrade("1.29.0", "1.31.1")
