"""A workshop child that a model has taken over: whatever it answers and leaves behind, no file of ours is taken.

Only the child is a stand-in, as it would be once it runs a stranger's code: it leaves files and answers lies.
"""

import io
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.contract.cells import Recipe
from farm.contract.evaluation import EvaluationRecipe
from farm.contract.reasons import ReasonCode
from farm.sandbox.ending import Ending
from farm.workshop import arrays, confined, divergence, orders

TakenOver = Callable[..., None]
Order = Callable[[Path], object]
MAIN = "model.onnx"
HONEST = {
    "inputs": {"batch": 1, "sizes": {}},
    "reference": {"made_by": "onnxruntime 1.31.1", "skipped": []},
    "variants": {"files": [MAIN], "history": [], "coverage": []},
    "calibration": {"samples": 3},
    "evaluation": {"n": 3, "output": "y", "classes": 2},
}
ORDERS: dict[str, tuple[str, Order]] = {
    "inputs": ("inputs.npz", lambda out: orders.prepare_inputs(out, MAIN, out_dir=out)),
    "reference": ("reference.npz", lambda out: orders.make_reference(out, MAIN, inputs=out, out_dir=out)),
    "variants": (MAIN, lambda out: orders.make_variant(out, MAIN, recipe=Recipe(precision="fp16"), out_dir=out)),
    "calibration": ("calibration.npz", lambda out: orders.accept_calibration(out, MAIN, data=out, out_dir=out)),
    "evaluation": (
        "evaluation.npz",
        lambda out: orders.check_evaluation(out, MAIN, data=out, recipe=EvaluationRecipe(), out_dir=out),
    ),
}


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch) -> TakenOver:
    """taken_over(reply, leave): every child of the workshop leaves something in its folder and answers this."""

    def take(reply: bytes, leave: Callable[[Path], object] = lambda out: None) -> None:
        def call(function: str, payload: dict[str, Any], *, files: confined.ChildFiles, **_: Any) -> Ending:
            assert files.out_dir is not None
            leave(files.out_dir)
            return Ending(kind="done", exit_code=0, reply=reply)

        monkeypatch.setattr(confined, "call_child", call)

    return take


def said(answer: object) -> bytes:
    return json.dumps({"answer": answer}).encode()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret", "model.onnx/../../secret"])
def test_a_path_in_the_answer_does_not_become_a_file_of_the_variant(taken_over: TakenOver, out: Path, name: str):
    (out.parent / "secret").write_text("another team's")
    taken_over(said({**HONEST["variants"], "files": [MAIN, name]}), lambda folder: (folder / MAIN).touch())
    made = orders.make_variant(out, MAIN, recipe=Recipe(precision="fp16"), out_dir=out)
    assert made.files == (MAIN,)


def test_the_data_beside_a_variant_are_found_and_nothing_else(taken_over: TakenOver, out: Path) -> None:
    def leave(folder: Path) -> None:
        for name in (MAIN, f"{MAIN}.data", "secret", "modelXonnx.data"):
            (folder / name).touch()

    taken_over(said(HONEST["variants"]), leave)
    made = orders.make_variant(out, MAIN, recipe=Recipe(precision="fp16"), out_dir=out)
    assert made.files == (MAIN, f"{MAIN}.data")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", ["link", "second name", "pipe"])
def test_what_lies_under_the_name_that_was_ordered_is_not_followed(
    taken_over: TakenOver, out: Path, order: str, what: str
) -> None:
    secret = out.parent / "secret"
    secret.write_text("another team's")
    name, call = ORDERS[order]
    plant: dict[str, Callable[[Path], object]] = {
        "link": lambda folder: (folder / name).symlink_to(secret),
        "second name": lambda folder: os.link(secret, folder / name),
        "pipe": lambda folder: os.mkfifo(folder / name),
    }
    taken_over(said(HONEST[order]), plant[what])
    with pytest.raises(orders.WorkshopError, match="not a regular file") as caught:
        call(out)
    assert caught.value.reason.code is ReasonCode.GARBLED


@pytest.mark.parametrize("order", ORDERS)
def test_a_file_that_is_said_to_be_there_and_is_not_is_a_reason_in_words(taken_over: TakenOver, out: Path, order: str):
    name, call = ORDERS[order]
    taken_over(said(HONEST[order]))
    with pytest.raises(orders.WorkshopError, match=f"left no {name}"):
        call(out)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[]",
        b"{}",
        b"7",
        b"null",
        b'{"answer": null}',
        b'{"answer": []}',
        b'{"answer": {"samples": 1e999, "n": -1, "batch": "x", "made_by": 7, "history": "x"}}',
        b'{"answer": {"samples": 99999999999, "n": 99999999999, "output": "\\ud800", "batch": 99999999999}}',
        b'{"problem": null}',
        b'{"problem": {"code": 1}}',
        b'{"answer":' * 200_000,
        b"[" * 1_000_000,
        b"9" * 10_000,
    ],
    ids=lambda reply: repr(reply[:40]),
)
def test_an_answer_of_another_form_is_a_reason_in_words(taken_over: TakenOver, out: Path, order: str, reply: bytes):
    name, call = ORDERS[order]
    taken_over(reply, lambda folder: (folder / name).touch())
    with pytest.raises(orders.WorkshopError) as caught:
        call(out)
    assert "answered something else" in caught.value.reason.text


def test_arrays_that_unpack_to_gigabytes_do_not_get_into_the_agents_memory(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "reference.npz", x=np.zeros(16 << 20, np.uint8))
    with pytest.raises(confined.WorkshopError, match="holds 16,777,344 bytes of arrays; at most 1,048,576"):
        divergence._read_values(tmp_path / "reference.npz", limit_bytes=1 << 20)


def test_arrays_that_claim_more_elements_than_there_is_memory_are_a_reason_in_words(tmp_path: Path) -> None:
    head = io.BytesIO()
    claimed = {"descr": "<f8", "fortran_order": False, "shape": (1 << 56,)}
    np.lib.format.write_array_header_1_0(head, claimed)
    with zipfile.ZipFile(tmp_path / "reference.npz", "w") as archive:
        archive.writestr("x.npy", head.getvalue())
    with pytest.raises(confined.WorkshopError, match="holds no plain arrays"):
        divergence._read_values(tmp_path / "reference.npz")


def test_a_list_as_long_as_of_a_million_empty_arrays_does_not_get_into_the_agents_memory(tmp_path: Path) -> None:
    arrays.write_npz(tmp_path / "few.npz", {f"x{number}": np.zeros(1, np.uint8) for number in range(200)})
    assert len(divergence._read_values(tmp_path / "few.npz")) == 200
    long_names = [f"{number:060000}" for number in range(arrays.MAX_LISTED_BYTES // 60_000 + 1)]
    arrays.write_npz(tmp_path / "many.npz", {name: np.zeros(0, np.uint8) for name in long_names})
    with pytest.raises(confined.WorkshopError, match="lists more arrays than"):
        divergence._read_values(tmp_path / "many.npz")


def test_a_large_file_that_is_no_archive_is_not_read_whole_to_say_so(tmp_path: Path) -> None:
    with (tmp_path / "reference.npz").open("wb") as file:
        file.truncate(256 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(confined.WorkshopError, match=r"is not an \.npz archive"):
            divergence._read_values(tmp_path / "reference.npz")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
