"""How likely a given text is to a model, and to two of them."""

import pytest

from farm.rules.generation import perplexity


@pytest.mark.parametrize(
    ("own", "baseline", "said"),
    [
        (12.56, None, "Perplexity of the given text is 12.56."),
        (12.56, 12.0, "Perplexity of the given text is 12.56, 4.67 % above c1's."),
        (11.4, 12.0, "Perplexity of the given text is 11.4, 5 % below c1's."),
        (12.0001, 12.0, "Perplexity of the given text is 12, as c1's."),
        (1234567.0, 1.0, "Perplexity of the given text is 1.235e+06, 1.23e+08 % above c1's."),
    ],
)
def test_a_text_is_as_likely_as_to_another_or_not(own: float, baseline: float | None, said: str) -> None:
    assert perplexity.describe_perplexity(own, baseline, baseline_name="c1") == said
