"""Blocks with several pairs of the same cell, and what becomes of their comparisons."""

from pathlib import Path
from typing import Any

import pytest

from farm.rules.matrices import matrix as matrices
from farm.rules.planning import planner
from farm.rules.runtimes.models import ModelFacts
from tests.bench import blocks, real_aa
from tests.bench.ledger import Ledger


def test_the_pairs_of_a_block_share_no_launch() -> None:
    model = ModelFacts(bundle_sha256="a" * 64, main_sha256="b" * 64)
    matrix = matrices.parse({"budget": "quick", "matrix": {"runtime": [blocks.RUNTIME], "provider": ["cpu"]}})
    (planned,) = planner.plan(matrix, model, with_null_pair=True).blocks
    block = blocks.with_pairs(planned, 4)
    compared = [(one.baseline, one.candidate) for one in block.comparisons]
    assert compared == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert [arm.arm for arm in block.arms] == list(range(8))
    assert len({arm.id for arm in block.arms}) == 8
    assert {arm.spec.digest for arm in block.arms} == {planned.arms[0].spec.digest}
    assert block.block_timeout_s == 4 * planned.block_timeout_s
    assert blocks.with_pairs(planned, 1) == planned


def line(block: int, slot: int, *, ratio: float = 1.0) -> dict[str, Any]:
    return {"model": "lstm", "block": block, "slot": slot, "pairs": [[1.0 + block, ratio]] * real_aa.ROUNDS}


def test_longer_blocks_are_joined_from_the_same_place_of_three_blocks() -> None:
    lines = [line(block, slot, ratio=10.0 + slot) for block in range(4) for slot in range(2)]
    joined = real_aa.chained(lines)
    assert [len(pairs) for pairs in joined] == [24, 24]
    assert [{old for old, _ in pairs} for pairs in joined] == [{1.0, 2.0, 3.0}] * 2
    assert [{new for _, new in pairs} for pairs in joined] == [{10.0}, {11.0}]


def test_a_ledger_goes_on_where_it_ended_and_refuses_another_measurement(tmp_path: Path) -> None:
    path = tmp_path / "aa.jsonl"
    Ledger(path, head={"seed": 1}).add(line(0, 0), line(0, 1))
    with path.open("a") as file:
        file.write('{"model": "ls')
    again = Ledger(path, head={"seed": 1})
    again.add(line(1, 0))
    assert [one["block"] for one in again.lines()] == [0, 0, 1]
    with pytest.raises(SystemExit, match="give another file"):
        Ledger(path, head={"seed": 2})
