"""Describes perplexity, which is exp of the mean negative log-likelihood of the tokens of a given text.

The text is given as token ids, so that models with different vocabularies cannot be compared.
"""

# a smaller change, as a fraction, counts as none
MIN_CHANGE = 0.0005


def describe_perplexity(perplexity: float, baseline: float | None = None, *, baseline_name: str) -> str:
    """Write `Perplexity of the given text is 12.6, 4.1 % above c1's.`, without the comparison where `baseline` is None.

    `baseline` is the perplexity of the cell `baseline_name`. A change of less than 0.05 % is written as `as c1's`.
    """
    sentence = f"Perplexity of the given text is {perplexity:.4g}"
    if not baseline:
        return f"{sentence}."
    change = perplexity / baseline - 1.0
    if abs(change) < MIN_CHANGE:
        return f"{sentence}, as {baseline_name}'s."
    return f"{sentence}, {100 * abs(change):.3g} % {'above' if change > 0 else 'below'} {baseline_name}'s."
