"""Pairs of cells to compare: alike but for one thing, the older as the base, the newest first."""

from dataclasses import replace

from dashboard.reading.pairs import MAX_PAIRS, list_pairs
from farm.runs.selectors.cells import MeasuredCell

CELL = MeasuredCell(
    1, "c1", "encoder", 1, "bench-1", "onnxruntime==1.29.0", "CPUExecutionProvider", 1, 1, "fp32"
)  # fmt: skip
NEWER = replace(CELL, name="c2", runtime="onnxruntime==1.31.1")


def test_the_cells_of_a_run_that_differ_in_one_thing_are_a_pair() -> None:
    found = list_pairs([CELL, NEWER, replace(NEWER, name="c3", precision="int8-dynamic")])
    [pair] = found["Recent runs"]
    assert (pair.name, pair.where) == ("1.29.0 → 1.31.1", "encoder, CPU, fp32, batch 1, 1 thread, bench-1, run 1")
    assert pair.href == "/compare/?cells=1:c1&cells=1:c2"
    # offered once
    assert set(found) == {"Recent runs"}


def test_the_older_release_is_the_base_whichever_was_measured_first() -> None:
    pairs = list_pairs([CELL, NEWER]) | list_pairs([NEWER, CELL]) | list_pairs([replace(CELL, run_id=5), NEWER])
    assert {pair.name for found in pairs.values() for pair in found} == {"1.29.0 → 1.31.1"}


def test_cells_of_two_opsets_are_no_pair_of_releases() -> None:
    assert list_pairs([replace(CELL, opset="17"), replace(NEWER, opset="22")]) == {}
    [pair] = list_pairs([replace(CELL, opset="17"), replace(NEWER, opset="17")])["Recent runs"]
    assert "fp32, opset 17, batch 1" in pair.where


def test_a_pair_is_offered_once() -> None:
    """A run of other models beside two was repeated: the same words stood there twice."""
    elsewhere = [replace(CELL, run_id=run, node="bench-2", threads=1, name=f"c{run}") for run in (2, 3)]
    again = [replace(cell, opset="", version=2) for cell in (*elsewhere, CELL)]
    assert len(list_pairs([*elsewhere, *again, CELL])["Two machines"]) == 1


def test_the_same_pair_of_models_on_two_releases_is_not_called_alike() -> None:
    cells = [CELL, NEWER, *(replace(cell, run_id=2, model="decoder") for cell in (CELL, NEWER))]
    assert len({pair.where for pair in list_pairs(cells)["Two models"]}) == 2


def test_machines_and_models_of_different_runs_are_pairs_with_the_older_as_the_base() -> None:
    elsewhere = replace(CELL, run_id=3, node="bench-2")
    other = replace(CELL, run_id=2, model="decoder", version=7)
    found = list_pairs([elsewhere, other, CELL])
    assert [pair.name for pair in found["Two machines"]] == ["bench-1 → bench-2"]
    assert [pair.name for pair in found["Two models"]] == ["encoder → decoder"]
    assert "Recent runs" not in found


def test_a_nightly_of_another_package_is_no_release_of_this_one() -> None:
    assert list_pairs([CELL, replace(NEWER, runtime="onnxruntime-openvino==1.24.1")]) == {}
    assert list_pairs([]) == {}


def test_only_the_newest_few_are_offered() -> None:
    cells = [replace(cell, run_id=run, model=f"m{run}") for run in range(9, 0, -1) for cell in (CELL, NEWER)]
    names = [pair.where.partition(",")[0] for pair in list_pairs(cells)["Recent runs"]]
    assert names == [f"m{run}" for run in range(9, 9 - MAX_PAIRS, -1)]
