"""Computes a decoder's perplexity on a given text.

The text is read as prompts of the launch's own length, without a cache. Each begins with the last token of the one
before, so every token but the text's first is scored once.
"""

import math

import numpy as np

from worker.runner import faults
from worker.runner.order import Call
from worker.runner.parity import Array
from worker.runner.scenarios.decoder_ports import Steps

# the maximum of tokens that are scored, because every launch scores them again
MAX_TOKENS = 4096


def compute_perplexity(call: Call, steps: Steps, text: Array) -> float | None:
    """Compute exp of the mean negative log-likelihood per token of `text`, of which the first MAX_TOKENS ids count.

    `call` runs the prompt of `steps`, whose tokens are restored afterwards. Return None where prompt or text has fewer
    than two tokens, or where the result is not finite. Raises Refusal where the model does not run.
    """
    prompts, scores = steps.prompt, steps.prompt_scores
    rows, length = prompts.shape
    text, before = text[:MAX_TOKENS], prompts.copy()
    if length < 2 or text.size < 2:
        return None
    starts = range(0, text.size - 1, length - 1)
    total = 0.0
    try:
        for first in range(0, len(starts), rows):
            parts = [text[start : start + length] for start in starts[first : first + rows]]
            for row, part in enumerate(parts):
                # later tokens do not change the scores of a token
                prompts[row] = part[-1]
                prompts[row, : part.size] = part
            with faults.translate_errors("run"):
                call()
            total += sum(_sum_negative_logs(scores[row], part) for row, part in enumerate(parts))
    finally:
        prompts[:] = before
    mean = total / (text.size - 1)
    return math.exp(mean) if mean < math.log(1e300) else None


def _sum_negative_logs(scores: Array, tokens: Array) -> float:
    """Sum -log p of every token but the first."""
    total = 0.0
    for before, token in zip(scores, tokens[1:], strict=False):
        wide = before.astype(np.float64)
        largest = wide.max()
        with np.errstate(invalid="ignore"):
            total += float(largest + np.log(np.exp(wide - largest).sum()) - wide[token])
    return total
