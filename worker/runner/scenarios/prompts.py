"""Prompts of a generation: token ids that came with the model, or drawn by the seed, the same for every runtime."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from worker.runner import faults
from worker.runner.arrays import load_arrays
from worker.runner.order import Order
from worker.runner.parity import Array


def load_prompts(order: Order, *, vocabulary: int) -> Array:
    """Load the given prompts of a generate scenario, or draw them by its seed, as token ids [sequence, token].

    Raises Refusal for a file that cannot be read, another shape, or ids beyond the vocabulary.
    """
    settings = order.scenario
    shape = (int(settings.get("batch", 1)), int(settings["prompt"]))
    if "given" not in settings:
        drawn: Array = np.random.default_rng(int(settings["seed"])).integers(0, vocabulary, shape)
        return drawn
    prompts = _read_given(order, "prompt", vocabulary=vocabulary)
    if prompts.shape != shape:
        expected = f"{shape[0]} rows of {shape[1]:,}"
        raise faults.Refusal(
            "artifact_unavailable", f"the given prompts have the shape {prompts.shape}, not {expected}"
        )
    return prompts


def load_text_to_score(order: Order, *, vocabulary: int) -> Array | None:
    """Load the token ids of a text to score, [token]; None where none was given. Raises Refusal for a bad file."""
    if order.prompts is None or "text" not in load_arrays(order.prompts):
        return None
    return _read_given(order, "text", vocabulary=vocabulary)


def draw_forced_tokens(settings: Mapping[str, Any], *, vocabulary: int) -> Array:
    """Draw the tokens that continue the prompt whatever the model chooses, so that all runtimes score the same text.

    The array is [step, sequence], and the same for the same seed.
    """
    dice = np.random.default_rng(np.random.SeedSequence([int(settings["seed"]) % 2**32, 0xF0CE]))
    # drawn one sequence after the other, so that the first is the same in a batch as alone
    tokens: Array = dice.integers(0, vocabulary, (int(settings.get("batch", 1)), int(settings["new"]))).T
    return tokens


def _read_given(order: Order, name: str, *, vocabulary: int) -> Array:
    """Read an array of the given file. Raises Refusal for invalid ids, because a runtime reads memory by them."""
    ids = load_arrays(order.prompts).get(name) if order.prompts is not None else None
    if ids is None:
        raise faults.Refusal("artifact_unavailable", f"the order names no prompts with {name}")
    if ids.dtype != np.int64 or (ids.size and not 0 <= ids.min() <= ids.max() < vocabulary):
        raise faults.Refusal("artifact_unavailable", f"the given {name} holds other than ids below {vocabulary:,}")
    return ids
