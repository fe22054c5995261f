"""Describes perplexity, which is exp of the mean negative log-likelihood of the tokens of a given text.

The text is given as token ids, so that models with different vocabularies cannot be compared.
"""

# a smaller change, as a fraction, counts as none
SAME = 0.0005


def describe_perplexity(own: float, baseline: float | None, *, named: str) -> str:
    """Write `Perplexity of the given text is 12.6, 4.1 % above c1's.`; `baseline` is that of the cell `named`."""
    sentence = f"Perplexity of the given text is {own:.4g}"
    if not baseline:
        return f"{sentence}."
    change = own / baseline - 1.0
    if abs(change) < SAME:
        return f"{sentence}, as {named}'s."
    return f"{sentence}, {100 * abs(change):.3g} % {'above' if change > 0 else 'below'} {named}'s."
