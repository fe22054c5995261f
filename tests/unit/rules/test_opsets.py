"""Which stamps each release loads, and what is said when it does not."""

import pytest

from farm.contract.cells import Loads
from farm.contract.reasons import ReasonCode
from farm.rules.runtimes import opsets, releases
from farm.rules.runtimes.observed_loads import merge_observed_loads

LADDER = [
    (13, 7),
    (15, 8),
    (17, 8),
    (19, 9),
    (20, 9),
    (21, 10),
    (22, 10),
    (23, 11),
    (24, 12),
    (25, 13),
    (26, 13),
    (28, 14),
]
HIGHEST = {
    "1.15.0": 19, "1.16.3": 19, "1.17.0": 20, "1.18.0": 21, "1.20.1": 21, "1.21.0": 22, "1.22.1": 22,
    "1.23.2": 23, "1.24.1": 25, "1.25.0": 26, "1.31.1": 26, "1.32.0": 28,
}  # fmt: skip


@pytest.mark.parametrize("version", HIGHEST)
def test_a_release_loads_the_ladder_up_to_its_own_opset(version: str) -> None:
    loads = [opset for opset, ir in LADDER if opsets.refusal({"": opset}, ir, (), version) is None]
    assert loads == [opset for opset, _ in LADDER if opset <= HIGHEST[version]]
    assert opsets.max_opset(version) == HIGHEST[version]


def test_every_known_release_is_in_the_table() -> None:
    for version in releases.ONNXRUNTIME:
        assert not opsets.limits_of(version).is_assumed


def test_a_newer_opset_says_which_release_loads_it() -> None:
    reason = opsets.refusal({"": 22}, 10, (), "1.20.1")
    assert reason.code == ReasonCode.OPSET_TOO_NEW
    assert reason.text.startswith("opset 22 needs ONNX Runtime ≥ 1.21, and 1.20.1 loads up to 21:")


def test_the_long_name_of_the_default_domain_counts_too() -> None:
    assert opsets.refusal({"ai.onnx": 27}, 8, (), "1.31.1") is not None


def test_an_opset_no_release_loads_says_so() -> None:
    reason = opsets.refusal({"": 29}, 10, (), "1.31.1")
    assert "newer than any known ONNX Runtime loads" in reason.text
    assert "take a release after 1.32, or" in reason.text


def test_machine_learning_operators_have_a_limit_of_their_own() -> None:
    reason = opsets.refusal({"": 17, "ai.onnx.ml": 4}, 8, (), "1.16.3")
    assert "ai.onnx.ml opset 4 needs ONNX Runtime ≥ 1.17" in reason.text


def test_the_runtimes_own_domains_have_no_limit() -> None:
    assert opsets.refusal({"": 17, "com.microsoft": 1}, 8, (), "1.15.0") is None


def test_a_future_ir_is_refused_everywhere() -> None:
    reason = opsets.refusal({"": 13}, 99, (), "1.31.1")
    assert reason.code == ReasonCode.IR_TOO_NEW
    assert "IR version 99 is newer than any known" in reason.text


def test_a_newer_ir_says_which_release_loads_it() -> None:
    reason = opsets.refusal({"": 17}, 10, (), "1.15.0")
    assert "IR version 10 needs ONNX Runtime ≥ 1.18" in reason.text


def test_a_custom_domain_is_in_no_release() -> None:
    reason = opsets.refusal({"": 17, "acme.ops": 1}, 8, ("acme.ops",), "1.31.1")
    assert reason.code == ReasonCode.CUSTOM_DOMAIN
    assert "acme.ops" in reason.text


def test_a_release_newer_than_any_known_is_not_refused_for_what_is_only_assumed() -> None:
    assert opsets.limits_of("2.0.0") == opsets.Limits(opset=28, ir=14, ml=5, is_assumed=True)
    assert opsets.refusal({"": 28}, 14, (), "1.40.0") is None
    assert opsets.refusal({"": 31, "ai.onnx.ml": 6}, 15, (), "1.40.0") is None


def test_a_model_of_the_newest_operators_names_the_release_that_loads_it() -> None:
    assert "opset 28 needs ONNX Runtime ≥ 1.32" in opsets.refusal({"": 28}, 14, (), "1.31.1").text


@pytest.mark.parametrize("version", ["1.14.1", "0.5.0", "newest"])
def test_a_release_older_than_the_table_is_refused(version: str) -> None:
    assert opsets.refusal({"": 9}, 4, (), version).code == ReasonCode.UNKNOWN_RUNTIME
    assert opsets.max_opset(version) is None


def test_the_lowest_release_is_the_first_that_loads_everything() -> None:
    assert opsets.find_lowest_runtime({"": 17}, 8) == "1.15"
    assert opsets.find_lowest_runtime({"": 17, "ai.onnx.ml": 4}, 8) == "1.17"
    assert opsets.find_lowest_runtime({"": 17}, 11) == "1.23"
    assert opsets.find_lowest_runtime({"": 29}, 8) is None


def test_domains_of_the_runtime_are_not_custom() -> None:
    assert not opsets.is_custom("com.microsoft")
    assert opsets.is_custom("acme.ops")


SEEN = {"1.40.0": Loads(opset=31, ir=16, ml=6)}


def test_what_was_learnt_of_a_newer_release_counts_and_is_no_assumption() -> None:
    assert opsets.limits_of("1.40.0", SEEN) == opsets.Limits(opset=31, ir=16, ml=6)
    assert opsets.max_opset("1.40.0", SEEN) == 31
    assert opsets.refusal({"": 31, "ai.onnx.ml": 6}, 16, (), "1.40.0", SEEN) is None
    reason = opsets.refusal({"": 32}, 16, (), "1.40.0", SEEN)
    assert (reason.code, "take a release after 1.40.0" in reason.text) == (ReasonCode.OPSET_TOO_NEW, True)
    assert opsets.refusal({"": 32}, 16, (), "1.40.1", SEEN) is None, "another release, which nobody tried"


def test_a_release_that_was_learnt_is_the_way_out_on_an_older_one() -> None:
    assert "opset 31 needs ONNX Runtime ≥ 1.40.0" in opsets.refusal({"": 31}, 8, (), "1.31.1", SEEN).text
    assert "IR version 16 needs ONNX Runtime ≥ 1.40.0" in opsets.refusal({"": 17}, 16, (), "1.31.1", SEEN).text
    assert opsets.find_lowest_runtime({"": 21}, 8, SEEN) == "1.18"
    assert opsets.find_lowest_runtime({"": 31}, 8, {"1.41.0": Loads(opset=33, ir=16, ml=6), **SEEN}) == "1.40.0"


def test_nobody_can_teach_that_a_release_loads_less_than_the_table_knows() -> None:
    low = Loads(opset=1, ir=1, ml=1)
    assert opsets.limits_of("1.40.0", {"1.40.0": low}) == opsets.Limits(opset=28, ir=14, ml=5)
    assert opsets.limits_of("1.31.1", {"1.31.1": Loads(opset=99, ir=99, ml=99)}).opset == 26


@pytest.mark.parametrize(
    ("said", "observed"),
    [
        ([], {}),
        ([SEEN], {}),
        ([{"onnxruntime==1.40.0": SEEN["1.40.0"]}], SEEN),
        ([{"onnxruntime==1.31.1": SEEN["1.40.0"], "torch==2.14.0": SEEN["1.40.0"]}], {}),
        ([{"my-ort==7.0": SEEN["1.40.0"]}], {}),
        ([{"onnxruntime-openvino==1.40.0": SEEN["1.40.0"]}, {"onnxruntime==1.40.0": Loads(opset=1, ir=1, ml=7)}],
         {"1.40.0": Loads(opset=31, ir=16, ml=7)}),
    ],
)  # fmt: skip
def test_machines_teach_of_releases_newer_than_the_table_and_the_highest_answer_counts(said, observed) -> None:
    assert merge_observed_loads(said) == observed
