"""The replay of recorded grids: on made-up ones whose best setting is known, which say nothing of real machines."""

import json
from pathlib import Path

import numpy as np
import pytest

from farm.rules.searches.race import Contender
from tests.bench import find_replay
from tests.documents import make_cell, make_document


def synthetic(medians: list[float], *, rounds: int = 16, noise: float = 0.01) -> dict[str, list[float]]:
    dice = np.random.default_rng(7)
    return {
        f"s{place}": [float(value * np.exp(noise * dice.standard_normal())) for _ in range(rounds)]
        for place, value in enumerate(medians)
    }


@pytest.mark.parametrize("medians", [[1.3, 1.0, *(1.2 + 0.1 * step for step in range(30))], [1.0] * 8 + [1.5] * 8])
def test_the_best_of_a_grid_is_in_the_answer(medians: list[float]) -> None:
    found = find_replay.replay(synthetic(medians), times=20, seed=1)
    assert found["best is in the answer"] >= 0.9
    assert found["first is near"] >= 0.9
    assert 0.0 < found["launches"] < 2.0


def test_one_that_stands_apart_takes_a_third_of_the_launches() -> None:
    found = find_replay.replay(synthetic([1.3, 1.0, *(1.2 + 0.1 * step for step in range(30))]), times=10, seed=1)
    assert found["answers are one"] == 1.0
    assert found["launches"] <= 0.35


def test_a_grid_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "grid.jsonl"
    assert find_replay.list_settings(path, "m.onnx", 0) == set()
    contenders = [Contender(name, {}, name) for name in ("a", "b")]
    for first in (4, 0):
        cells = [make_cell(name, samples_ms=[first + 1.0] * 4) for name in "ab"]
        find_replay.append(path, "m.onnx", first, contenders, make_document(*cells))
    assert find_replay.list_settings(path, "m.onnx", 4) == {"a", "b"}
    path.write_text(path.read_text() + json.dumps({"model": "m.onnx", "setting": "c", "first": 0, "p50_ms": [1.0]}))
    assert find_replay.build_grids(find_replay.read_lines(path)) == {
        "m.onnx": dict.fromkeys("ab", [1.0] * 4 + [5.0] * 4)
    }
