"""The engines pass: outputs of two arms against each other, and what is too much to compare."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from worker.runner import engine_pairs, faults
from worker.runner.arrays import save_arrays
from worker.runner.order import Order, PhaseTimer


def kept(folder: Path, name: str, **outputs: Any) -> str:
    path = str(folder / f"{name}.npz")
    save_arrays(path, outputs)
    return path


def compared(*pairs: dict[str, Any], **limits: int) -> dict[str, Any]:
    order = Order(kind="engines", model="", inputs="", provider="CPUExecutionProvider", pairs=pairs)
    return engine_pairs.compare_engines(order, timer=PhaseTimer(launched_ns=None, entered_ns=0), **limits)


def pair(one: int, other: int, one_path: str, other_path: str, *, atol: float = 1e-5) -> dict[str, Any]:
    paths = {"one_path": one_path, "other_path": other_path}
    return {"one": one, "other": other, **paths, "atol": atol, "rtol": 0.0, "own": {}, "is_by_order": False}


def test_each_pair_is_compared_by_its_own_tolerance(tmp_path: Path) -> None:
    # `file` is a name that numpy's own savez refuses
    first = kept(tmp_path, "first", file=np.zeros(4, np.float32))
    second = kept(tmp_path, "second", file=np.asarray([0, 0, 0.5, 0], np.float32))
    found = compared(pair(0, 1, first, second), pair(0, 2, first, second, atol=1.0))
    assert found["left_out"] == 0
    beyond = {one["other"]: one["outputs"][0]["violations"] for one in found["pairs"]}
    assert beyond == {1: 1, 2: 0}


def test_an_output_that_only_one_side_has_or_that_is_no_tensor_is_not_compared(tmp_path: Path) -> None:
    first = kept(tmp_path, "first", y=np.zeros(1), s="seq(tensor(float))")
    second = kept(tmp_path, "second", z=np.zeros(1))
    (found,) = compared(pair(0, 1, first, second))["pairs"]
    assert [(one["name"], "reference_shape" in one) for one in found["outputs"]] == [("z", False)]


def test_of_two_models_outputs_of_other_names_are_compared_in_their_order_by_their_own_tolerance(tmp_path: Path):
    first = kept(tmp_path, "first", y=np.zeros(2), old_a=np.zeros(2), old_b=np.ones(2))
    second = kept(tmp_path, "second", new_a=np.zeros(2), y=np.full(2, 0.25), new_b=np.ones(2), more=np.ones(2))
    order = pair(0, 1, first, second) | {"own": {"y": (0.5, 0.0)}, "is_by_order": True}
    (found,) = compared(order)["pairs"]
    told = {one["name"]: (one.get("max_abs"), one.get("violations")) for one in found["outputs"]}
    assert told == {"new_a": (0.0, 0), "y": (0.25, 0), "new_b": (0.0, 0), "more": (None, None)}
    renamed = {one["name"]: one["reference_name"] for one in found["outputs"] if "reference_name" in one}
    assert renamed == {"new_a": "old_a", "new_b": "old_b"}


def test_what_is_too_much_to_compare_is_counted_and_the_smaller_pairs_are_compared(tmp_path: Path) -> None:
    small, large = kept(tmp_path, "small", y=np.zeros(4)), kept(tmp_path, "large", y=np.zeros(100))
    found = compared(pair(0, 1, large, large), pair(2, 3, small, small), max_elements=10)
    assert ([one["one"] for one in found["pairs"]], found["left_out"]) == ([2], 1)


def test_outputs_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"no archive")
    with pytest.raises(faults.Refusal):
        compared(pair(0, 1, str(broken), str(broken)))
