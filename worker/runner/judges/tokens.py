"""Judges scores of the next token by perplexity."""

from collections.abc import Sequence

import numpy as np

from worker.runner.judges.judge import Array, Judge, check_row_per_label, make_pseudovalues, make_shape_refusal


def sum_negative_log_likelihoods(outputs: Array, labels: Array) -> Array:
    """Sum -log p over each sample's tokens and count them, [sample, 2]; a label below 0 does not count.

    Raises Refusal for outputs of another shape.
    """
    check_row_per_label(outputs, labels)
    if outputs.ndim != 3 or outputs.shape[:2] != labels.shape or outputs.shape[2] <= int(labels.max(initial=0)):
        raise make_shape_refusal(f"the shape {list(outputs.shape)} for labels of {list(labels.shape)}")
    return np.array([_sum_for_sample(scores, tokens) for scores, tokens in zip(outputs, labels, strict=True)])


def _sum_for_sample(scores: Array, tokens: Array) -> tuple[float, int]:
    counts = tokens >= 0
    wide = scores[counts].astype(np.float64)
    highest = wide.max(axis=1, keepdims=True, initial=-np.inf)
    logs = np.log(np.exp(wide - highest).sum(axis=1)) + highest[:, 0]
    return float((logs - wide[np.arange(len(wide)), tokens[counts]]).sum()), len(wide)


def compute_perplexity(batches: Sequence[Array]) -> Array:
    """Compute each sample's pseudo-value of perplexity, exp of the mean of -log p over all tokens.

    `batches` are results of `sum_negative_log_likelihoods`. The values are NaN where no token counts.
    """
    surprise, count = np.concatenate(batches).T
    whole, others = float(np.exp(surprise.sum() / count.sum())), count.sum() - count
    # a mean over no tokens would be 0 / 0, so the mean of all samples stands in for it
    without = np.divide(surprise.sum() - surprise, others, out=np.full(len(others), np.log(whole)), where=others > 0)
    return make_pseudovalues(whole, np.exp(without))


PERPLEXITY = Judge(sum_negative_log_likelihoods, compute_perplexity)
