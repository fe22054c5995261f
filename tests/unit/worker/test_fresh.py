"""`fresh` without a runtime: inputs by the seed, growth from quarters, answers held against those given alone."""

import ctypes
import sys
from array import array

import numpy as np
import pytest

from worker.runner import memory
from worker.runner.faults import Refusal
from worker.runner.order import Order
from worker.runner.scenarios import fresh, table
from worker.runner.scenarios.answer_checks import MAX_BYTES, Answers
from worker.runner.scenarios.fresh import compute_growth_per_1000, make_alternating_call
from worker.runner.scenarios.inputs import InputSetOptions, make_input_sets

DIMS = {"ids": ["batch", "seq"], "mask": ["batch", "seq"], "places": ["batch", "seq"], "length": []}


def given() -> dict[str, np.ndarray]:
    return {
        "ids": np.arange(10, 26, dtype=np.int64).reshape(2, 8),
        "mask": np.ones((2, 8), dtype=np.bool_),
        "places": np.broadcast_to(np.arange(8), (2, 8)),
        "length": np.array(8),
    }


def test_sets_follow_the_seed_and_hold_values_of_the_given_inputs() -> None:
    wanted = InputSetOptions(count=8, seed=7)
    first, again, other = (
        make_input_sets(given(), DIMS, one) for one in (wanted, wanted, InputSetOptions(count=8, seed=8))
    )
    assert len(first) == 8
    assert all(np.array_equal(a.arrays["ids"], b.arrays["ids"]) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.arrays["ids"], b.arrays["ids"]) for a, b in zip(first, other, strict=True))
    assert len({one.arrays["ids"].tobytes() for one in first}) == 8
    for one in first:
        assert set(one.arrays["ids"].ravel()) <= set(range(10, 26))
        assert one.arrays["mask"].all()
        assert {name: array.shape for name, array in one.arrays.items()} == {n: a.shape for n, a in given().items()}
        assert {name: array.dtype for name, array in one.arrays.items()} == {n: a.dtype for n, a in given().items()}


def test_sizes_come_in_turn_and_random_ones_are_drawn_between_the_others() -> None:
    made = {"places": "positions", "length": "size:seq"}
    found = make_input_sets(
        given(), DIMS, InputSetOptions(count=8, seed=1, shapes={"seq": [4, 32, "random"]}, made=made)
    )
    sizes = [one.arrays["ids"].shape[1] for one in found]
    assert (sizes[0::3], sizes[1::3]) == ([4, 4, 4], [32, 32, 32])
    assert all(4 <= size <= 32 for size in sizes[2::3])
    assert [one.label for one in found] == [f"seq={size}" for size in sizes]
    for size, one in zip(sizes, found, strict=True):
        assert one.arrays["places"].tolist() == [list(range(size))] * 2
        assert one.arrays["length"] == size
    alone = make_input_sets(given(), DIMS, InputSetOptions(count=32, shapes={"seq": [16, "random"]}))
    assert min(one.arrays["ids"].shape[1] for one in alone) < 8


def test_positions_start_where_the_past_ends_and_indices_stay_below_their_size() -> None:
    dims = {"places": ["batch", "new"], "past": ["past"], "edges": ["m"]}
    arrays = {"places": np.array([[256]]), "past": np.zeros(256), "edges": np.arange(64)}
    made = {"places": "positions:past", "edges": "below:nodes@3"}
    longer, *_ = make_input_sets(arrays, dims, InputSetOptions(shapes={"new": [3]}, made=made))
    assert longer.arrays["places"].tolist() == [[256, 257, 258]]
    moved, *_ = make_input_sets(arrays, dims, InputSetOptions(shapes={"past": [10], "nodes": [8]}, made=made))
    assert moved.arrays["places"].tolist() == [[10]]
    assert moved.arrays["edges"].max() < 8


def test_boxes_stay_whole() -> None:
    boxes = np.array([[[1, 2, 3, 4], [5, 6, 7, 8]]])
    made = {"bbox": "boxes:1000"}
    (found, *_) = make_input_sets(
        {"bbox": boxes}, {"bbox": ["batch", "seq", 4]}, InputSetOptions(shapes={"seq": [9]}, made=made)
    )
    assert {tuple(row) for row in found.arrays["bbox"][0]} <= {(1, 2, 3, 4), (5, 6, 7, 8)}
    assert found.arrays["bbox"].shape == (1, 9, 4)


def test_more_sizes_than_sets_make_a_set_of_each() -> None:
    found = make_input_sets(given(), DIMS, InputSetOptions(count=8, shapes={"seq": list(range(1, 13))}))
    assert [one.arrays["ids"].shape[1] for one in found] == list(range(1, 13))


def test_inputs_that_nothing_can_be_drawn_from_stay() -> None:
    (one, *_) = make_input_sets({"x": np.zeros((0, 4))}, {"x": ["n", 4]}, InputSetOptions())
    assert one.arrays["x"].shape == (0, 4)
    (odd, *_) = make_input_sets({"x": np.ones(3)}, {}, InputSetOptions(shapes={"n": [5]}))
    assert odd.arrays["x"].shape == (3,), "a dimension that nobody named"


def readings(resident: list[int], *, every: int = 10) -> tuple["array[int]", "array[int]"]:
    return array("Q", range(every, every * (len(resident) + 1), every)), array("Q", resident)


def test_growth_is_that_of_the_last_half_alone() -> None:
    settled = [1000 * n for n in range(50)] + [50_000] * 50
    assert compute_growth_per_1000(*readings(settled)) == 0.0
    leaking = [100 * n for n in range(100)]
    assert compute_growth_per_1000(*readings(leaking)) == pytest.approx(10_000.0)
    falling = [100 * (100 - n) for n in range(100)]
    assert compute_growth_per_1000(*readings(falling)) == pytest.approx(-10_000.0)
    assert compute_growth_per_1000(*readings([1] * 7)) is None
    assert compute_growth_per_1000(array("Q", [5] * 16), array("Q", [1] * 16)) is None


def test_calls_come_in_turn() -> None:
    said: list[str] = []
    call = make_alternating_call([lambda: said.append("a"), lambda: said.append("b")])
    for _ in range(5):
        call()
    assert "".join(said) == "ababa"


def kept() -> Answers:
    return Answers(Order(kind="sample", model="", inputs="", provider=""))


def test_an_answer_that_is_another_than_alone_is_counted_once_for_its_set() -> None:
    found = kept()
    for number in range(3):
        found.keep_first(number, {"y": np.full(4, float(number)), "z": "a sequence"})
        found.compare_alone(number, {"y": np.full(4, float(number))})
    assert found.differing_count is None, "nothing was compared yet"
    for number in range(3):
        found.compare(number, {"y": np.full(4, float(number)) + (number == 1)})
        found.compare(number, {"y": np.full(4, float(number))})
    assert found.differing_count == 1.0


def test_nothing_is_told_of_models_that_draw_nor_of_answers_too_large_to_keep() -> None:
    drawing = kept()
    drawing.keep_first(0, {"y": np.zeros(2)})
    drawing.compare_alone(0, {"y": np.ones(2)})
    drawing.compare(0, {"y": np.ones(2)})
    assert drawing.differing_count is None
    large = kept()
    large.keep_first(0, {"y": np.broadcast_to(np.float32(0), (MAX_BYTES // 4 + 1,))})
    large.compare(0, {"y": np.ones(1)})
    assert large.differing_count is None


def test_a_scenario_that_nobody_knows_is_refused() -> None:
    with pytest.raises(Refusal, match="knows no scenario named 'stale'"):
        table.find_scenario("stale")


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc gives freed memory back when asked")
def test_what_was_freed_is_given_back_before_memory_is_read() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pieces = [libc.malloc(4_000) for _ in range(8_000)]
    for piece in pieces:
        ctypes.memset(piece, 1, 4_000)
    # the last one keeps the heap from shrinking by itself
    for piece in pieces[:-1]:
        libc.free(piece)
    with fresh.ResidentReader() as resident:
        held = resident.read_bytes()
        memory.release_freed_memory()
        assert resident.read_bytes() < held - 16 * 2**20
    libc.free(pieces[-1])
