"""How likely a model finds a text that was given: exp of the mean negative log-likelihood of its tokens. Pure.

Of the tokens as ids, so that models of other vocabularies do not compare.
"""

# below so small a change it is said to be the same
SAME = 0.0005


def sentence(own: float, baseline: float | None, *, named: str) -> str:
    """`Perplexity of the given text is 12.6, 4.1 % above c1's.`; `baseline`: of the cell that is `named`, if any."""
    said = f"Perplexity of the given text is {own:.4g}"
    if not baseline:
        return f"{said}."
    change = own / baseline - 1.0
    if abs(change) < SAME:
        return f"{said}, as {named}'s."
    return f"{said}, {100 * abs(change):.3g} % {'above' if change > 0 else 'below'} {named}'s."
