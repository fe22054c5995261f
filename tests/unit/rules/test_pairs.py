"""Two packages that are watched together: the newest pair, the steps to it, and which of them moved."""

import pytest

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.changes.watch_rounds import Rule, judge
from farm.rules.runtimes import pairs
from farm.rules.runtimes.allowances import allowed_range
from tests.unit.rules.test_watching import cell

GGML = "onnxruntime-ggml=="


def both(own: str, core: str) -> str:
    return f"{own}+onnxruntime.{core}"


def test_a_version_that_names_one_package_is_no_pair():
    assert not pairs.is_pair("1.31.1")
    assert pairs.changing_packages("onnxruntime-qnn", "2.7.0") == ("onnxruntime-qnn",)
    assert pairs.changing_packages("onnxruntime-ggml", both("0.2.0", "1.30.0")) == ("onnxruntime-ggml", "onnxruntime")


def test_the_newest_pair_has_the_newest_of_each_and_never_goes_back_behind_the_reference():
    reference = both("0.2.0", "1.29.0")
    assert pairs.newest_pair(reference, owns=["0.10.0", "0.9.0"], cores=["1.30.0", "1.9.0"]) == both("0.10.0", "1.30.0")
    assert pairs.newest_pair(reference, owns=["0.1.0"], cores=[]) == reference


def test_only_releases_of_the_packages_range_stand_beside_it():
    cores = ["1.28.0", "1.29.0", "1.30.0", "1.31.1"]
    assert pairs.select_cores(allowed_range("onnxruntime-ggml", ()), cores) == ["1.29.0", "1.30.0"]
    assert pairs.select_cores(None, cores) == cores


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        (both("0.2.0", "1.29.0"), both("0.2.0", "1.30.0"), [both("0.2.0", "1.30.0")]),
        (both("0.2.0", "1.29.0"), both("0.3.0", "1.29.0"), [both("0.3.0", "1.29.0")]),
        (both("0.2.0", "1.29.0"), both("0.3.0", "1.30.0"), [both("0.2.0", "1.30.0"), both("0.3.0", "1.30.0")]),
        ("1.29.0", "1.30.0", ["1.30.0"]),
        ("0.2.0", both("0.3.0", "1.30.0"), [both("0.3.0", "1.30.0")]),
    ],
)
def test_where_both_moved_onnx_runtime_goes_first_and_one_at_a_time(old, new, steps):
    assert pairs.list_steps(old, new) == steps


def test_a_change_is_looked_for_among_the_releases_of_whichever_moved():
    owns, cores = ["0.2.0", "0.2.1", "0.3.0"], ["1.28.0", "1.29.0", "1.29.1", "1.30.0", "1.31.1"]
    found = pairs.list_pairs_between(both("0.2.0", "1.29.0"), both("0.2.0", "1.30.0"), owns=owns, cores=cores)
    assert found == [both("0.2.0", core) for core in ("1.29.0", "1.29.1", "1.30.0")]
    found = pairs.list_pairs_between(both("0.2.0", "1.30.0"), both("0.3.0", "1.30.0"), owns=owns, cores=cores)
    assert found == [both(own, "1.30.0") for own in ("0.2.0", "0.2.1", "0.3.0")]
    found = pairs.list_pairs_between(both("0.2.1", "1.29.1"), both("0.4.0", "1.30.0"), owns=owns, cores=cores)
    assert found == [
        both("0.2.1", "1.29.1"), both("0.2.1", "1.30.0"), both("0.3.0", "1.30.0"), both("0.4.0", "1.30.0")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "which", "sentence"),
    [
        (
            both("0.2.0", "1.29.0"),
            both("0.2.0", "1.30.0"),
            ("onnxruntime",),
            "ONNX Runtime moved, from 1.29.0 to 1.30.0; onnxruntime-ggml stayed at 0.2.0.",
        ),
        (
            both("0.2.0", "1.30.0"),
            both("0.3.0", "1.30.0"),
            ("onnxruntime-ggml",),
            "onnxruntime-ggml moved, from 0.2.0 to 0.3.0; ONNX Runtime stayed at 1.30.0.",
        ),
        (
            both("0.2.0", "1.29.0"),
            both("0.3.0", "1.30.0"),
            ("onnxruntime-ggml", "onnxruntime"),
            "Both moved: onnxruntime-ggml from 0.2.0 to 0.3.0, ONNX Runtime from 1.29.0 to 1.30.0.",
        ),
        (both("0.2.0", "1.29.0"), both("0.2.0", "1.29.0"), (), ""),
        ("0.2.0", both("0.2.0", "1.29.0"), (), ""),
    ],
)
def test_which_of_the_two_moved_is_said(old, new, which, sentence):
    assert pairs.moved_packages(Runtime.of(GGML + old), Runtime.of(GGML + new)) == which
    assert pairs.moved_sentence(Runtime.of(GGML + old), Runtime.of(GGML + new)) == sentence


def test_of_two_different_packages_none_moved():
    assert (
        pairs.moved_packages(
            Runtime.of(GGML + both("0.2.0", "1.29.0")), Runtime.of("their-ep==" + both("0.3.0", "1.30.0"))
        )
        == ()
    )


def test_a_finding_of_a_watch_says_which_of_the_two_packages_moved():
    old, new = GGML + both("0.2.0", "1.29.0"), GGML + both("0.2.0", "1.30.0")
    document = Document(machine={}, seed=0, cells=[cell("c1", old), cell("c2", new, status="failed")], comparisons=[])
    (found,) = judge(document, Rule(), old=Runtime.of(old), new=Runtime.of(new)).findings
    assert found.text.endswith("ONNX Runtime moved, from 1.29.0 to 1.30.0; onnxruntime-ggml stayed at 0.2.0.")
