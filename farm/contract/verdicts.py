"""The verdicts of comparisons, as documents spell them; farm.rules.wording has their signs, order and opposites."""

from typing import Literal

Verdict = Literal["slower", "faster", "equal", "undecided", "not comparable"]
# a comparison of items per second, where the two sides have different batches
ItemsVerdict = Literal["more", "fewer", "equal", "undecided", "not comparable"]
# a comparison of a single metric
MetricVerdict = Literal["slower", "faster", "bigger", "smaller", "lower", "higher", "equal", "undecided"]
# the verdict in words of a comparison of latency, of items per second, of the highest rate, or of memory
Word = Verdict | ItemsVerdict | Literal["higher", "lower", "bigger", "smaller"]
