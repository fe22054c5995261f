"""What a generation is given: token ids drawn by the seed, the same for every runtime."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from worker.runner.parity import Array


def of(told: Mapping[str, Any], *, vocabulary: int) -> Array:
    """The prompts of a generate scenario, [sequence, token]."""
    shape = (int(told.get("batch", 1)), int(told["prompt"]))
    found: Array = np.random.default_rng(int(told["seed"])).integers(0, vocabulary, shape)
    return found


def forced(told: Mapping[str, Any], *, vocabulary: int) -> Array:
    """Tokens to go on with whatever the model chooses, [step, sequence]: all runtimes then score the same text."""
    dice = np.random.default_rng(np.random.SeedSequence([int(told["seed"]) % 2**32, 0xF0CE]))
    found: Array = dice.integers(0, vocabulary, (int(told["new"]), int(told.get("batch", 1))))
    return found
