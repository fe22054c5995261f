"""The table of releases that load a model."""

from farm.contract.cells import Loads
from farm.contract.reasons import Reason, ReasonCode
from farm.rules.runtimes import compatibility, releases
from farm.rules.runtimes.compatibility import Stamps

OPSET_21 = Stamps({"": 21}, 10)


def test_a_release_that_nobody_tried_is_not_said_to_load_what_is_newer_than_all_that_were() -> None:
    newer, seen = Stamps({"": 29}, 14), {"1.40.0": Loads(opset=30, ir=14, ml=5)}
    row = compatibility.compatibility_rows(newer, more=["1.40.0"])[-1]
    assert (row.loads, row.basis, row.reason) == (False, "untried", None)
    assert "no machine has tried" in row.sentence()
    assert compatibility.find_oldest_loading(compatibility.compatibility_rows(newer, more=["1.40.0"])) is None
    assert (
        compatibility.find_oldest_loading(compatibility.compatibility_rows(newer, more=["1.40.0"], observed=seen))
        == "1.40.0"
    )
    assert (
        compatibility.find_oldest_loading(compatibility.compatibility_rows(newer, measured={"1.40.0": None}))
        == "1.40.0"
    )
    assert compatibility.compatibility_rows(OPSET_21, more=["1.40.0"])[-1].loads, (
        "releases load what those before them do"
    )


def test_every_known_release_has_a_row_and_loads_from_the_lowest_on() -> None:
    rows = compatibility.compatibility_rows(OPSET_21)
    assert [row.version for row in rows] == list(releases.ONNXRUNTIME)
    assert compatibility.find_oldest_loading(rows) == "1.18.0"
    assert [row.sentence() for row in rows if row.reason is None] == ["loads"] * (
        len(releases.ONNXRUNTIME) - releases.ONNXRUNTIME.index("1.18.0")
    )
    assert "needs ONNX Runtime ≥ 1.18" in rows[0].sentence()


def test_releases_learnt_from_nodes_are_in_the_table() -> None:
    assert compatibility.compatibility_rows(OPSET_21, more=["1.40.0", "1.31.1"])[-1].version == "1.40.0"


def test_a_model_no_release_loads_has_no_lowest() -> None:
    assert compatibility.find_oldest_loading(compatibility.compatibility_rows(Stamps({"": 17}, 99))) is None
    assert (
        compatibility.find_oldest_loading(compatibility.compatibility_rows(Stamps({"": 17, "acme": 1}, 8, ("acme",))))
        is None
    )


def test_stamps_that_alone_stand_in_the_way_are_told() -> None:
    row = compatibility.compatibility_rows(Stamps({"": 17, "ai.onnx.ml": 5}, 10, (), ("ai.onnx.ml",)))[0]
    assert row.reason is not None
    assert row.tidied
    assert row.sentence().endswith("A variant converted to another opset loads.")


def test_operators_that_stand_in_the_way_cannot_be_tidied_away() -> None:
    assert not compatibility.compatibility_rows(OPSET_21)[0].tidied


def test_a_model_whose_every_import_is_unused_keeps_them() -> None:
    assert Stamps({"": 17}, 10, (), ("",)).tidy() == Stamps({"": 17}, 3)


def test_fusions_that_differ_are_read_off_traces() -> None:
    rows = compatibility.compatibility_rows(OPSET_21, executed={"1.19.0": 46, "1.23.0": 60, "1.31.1": 60})
    said = {row.version: row.sentence() for row in rows if row.executed_nodes}
    assert said["1.19.0"] == "loads, but with different fusions: 46 nodes run"
    assert said["1.23.0"] == said["1.31.1"] == "loads"


def test_neighbours_of_which_the_same_is_said_share_a_range() -> None:
    rows = compatibility.compatibility_rows(OPSET_21, executed={"1.19.0": 46, releases.ONNXRUNTIME[-1]: 60})
    ranges = [(first, last) for first, last, _ in compatibility.group_by_answer(rows)]
    assert ranges == [
        ("1.15.0", "1.16.3"), ("1.17.0", "1.17.3"), ("1.18.0", "1.18.1"), ("1.19.0", "1.19.0"),
        ("1.19.2", releases.ONNXRUNTIME[-1]),
    ]  # fmt: skip


def test_what_was_measured_counts_before_what_is_derived() -> None:
    why = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="It has no kernel for Foo.")
    rows = compatibility.compatibility_rows(OPSET_21, measured={"1.18.0": why, "1.17.3": None, "1.40.1": None})
    by = {row.version: row for row in rows}
    assert (by["1.18.0"].reason, by["1.18.0"].basis) == (why, "measured")
    assert (by["1.17.3"].reason, by["1.17.3"].basis) == (None, "measured")
    assert (by["1.18.1"].reason, by["1.18.1"].basis) == (None, "derived")
    assert by["1.40.1"].is_measured
    assert compatibility.find_oldest_loading(rows) == "1.17.3"


def test_the_table_is_one_sentence() -> None:
    assert compatibility.verdict_sentence(compatibility.compatibility_rows(OPSET_21)) == (
        "Loads on ONNX Runtime 1.18.0 and newer (derived from its opsets and IR version, not measured)."
    )
    why = Reason(code=ReasonCode.MODEL_NOT_LOADED, text="It has no kernel for Foo.")
    tried = compatibility.compatibility_rows(OPSET_21, measured={"1.20.0": why, "1.31.1": None})
    assert compatibility.verdict_sentence(tried) == (
        "Loads on ONNX Runtime 1.18.0 and newer, but not on 1.20.0 "
        f"(2 of {len(releases.ONNXRUNTIME)} releases were measured)."
    )
    none = compatibility.compatibility_rows(Stamps({"": 17}, 99))
    assert compatibility.verdict_sentence(none) == "No known release of ONNX Runtime loads this model as it is."


def test_a_measured_release_does_not_share_a_range_with_a_derived_one() -> None:
    rows = compatibility.compatibility_rows(OPSET_21, measured={"1.31.1": None})
    assert [(first, last) for first, last, _ in compatibility.group_by_answer(rows)][-3:-1] == [
        ("1.18.0", "1.31.0"), ("1.31.1", "1.31.1"),
    ]  # fmt: skip


def test_a_program_reads_the_same_table_as_a_person() -> None:
    rows = compatibility.compatibility_rows(OPSET_21)
    plain = compatibility.table_as_plain(rows)
    assert (plain["sentence"], plain["lowest"]) == (compatibility.verdict_sentence(rows), "1.18.0")
