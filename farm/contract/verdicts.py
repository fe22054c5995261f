"""The verdicts of comparisons, as documents spell them; farm.rules.wording has their signs, order and opposites."""

from typing import Literal

Verdict = Literal["slower", "faster", "equal", "undecided", "not comparable"]
# of items per second, where both sides have other batches
ItemsVerdict = Literal["more", "fewer", "equal", "undecided", "not comparable"]
# of one metric among others
MetricVerdict = Literal["slower", "faster", "bigger", "smaller", "lower", "higher", "equal", "undecided"]
# the word for a comparison of latency, of items per second, of the highest rate, or of memory
Word = Verdict | ItemsVerdict | Literal["higher", "lower", "bigger", "smaller"]
