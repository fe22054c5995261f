"""Scores of the next token, against the tokens that came."""

from collections.abc import Sequence

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_shape_refusal, parts


def negative_log_likelihoods(outputs: Array, labels: Array) -> Array:
    """Of each sample the sum of -log p of its tokens, and how many they are; a label below 0 does not count."""
    check_row_per_label(outputs, labels)
    if outputs.ndim != 3 or outputs.shape[:2] != labels.shape or outputs.shape[2] <= int(labels.max(initial=0)):
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    return np.array([_surprise(scores, tokens) for scores, tokens in zip(outputs, labels, strict=True)])


def _surprise(scores: Array, tokens: Array) -> tuple[float, int]:
    counts = tokens >= 0
    wide = scores[counts].astype(np.float64)
    highest = wide.max(axis=1, keepdims=True, initial=-np.inf)
    logs = np.log(np.exp(wide - highest).sum(axis=1)) + highest[:, 0]
    return float((logs - wide[np.arange(len(wide)), tokens[counts]]).sum()), len(wide)


def perplexity(seen: Sequence[Array]) -> Array:
    """Parts of exp(mean of -log p over all tokens)."""
    surprise, count = np.concatenate(seen).T
    whole, rest = float(np.exp(surprise.sum() / count.sum())), count.sum() - count
    # a sample that is all there is leaves nothing behind
    without = np.divide(surprise.sum() - surprise, rest, out=np.full(len(rest), np.log(whole)), where=rest > 0)
    return parts(whole, np.exp(without))


PERPLEXITY = Judge(negative_log_likelihoods, perplexity)
