"""Limits how often each sender may make a request, by one token bucket per sender, in bounded memory.

A bucket holds `max_tokens` tokens and is refilled by `per_s` tokens a second. A request takes one, and is refused while
there is none. An unused bucket is full again after a while, so little is lost when the one that was used longest ago is
forgotten.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

# buckets kept at once, some 200 bytes each
MAX_BUCKETS = 20_000


@dataclass(frozen=True)
class Rate:
    """A bucket holds `max_tokens` tokens at most, and `per_s` tokens a second come back."""

    max_tokens: float
    per_s: float


class Buckets:
    """Token buckets of many senders, all with the same rate; safe to use from several threads.

    Their length is the number of senders that are remembered. A sender that is forgotten has a full bucket again.
    """

    def __init__(
        self, rate: Rate, *, max_buckets: int = MAX_BUCKETS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._max_buckets, self._clock = rate, max_buckets, clock
        # sender → tokens, and when they were counted; the one used longest ago comes first
        self._counted: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counted)

    def take(self, sender: Hashable, tokens: float = 1.0) -> float:
        """Take tokens and return 0.0. If less than one token is left, take none, and return the seconds until one is.

        `tokens` may be more than are left: the bucket then goes negative, and later requests wait until it is refilled.
        """
        with self._lock:
            available = self._count_tokens(sender)
            if available < 1.0:
                return (1.0 - available) / self._rate.per_s
            self._store(sender, available - tokens)
            return 0.0

    def charge(self, sender: Hashable, tokens: float) -> None:
        """Take tokens even where there are too few, for a cost known afterwards; a negative number gives them back."""
        with self._lock:
            self._store(sender, min(self._rate.max_tokens, self._count_tokens(sender) - tokens))

    def forget(self, sender: Hashable) -> None:
        with self._lock:
            self._counted.pop(sender, None)

    def _count_tokens(self, sender: Hashable) -> float:
        now = self._clock()
        tokens, at = self._counted.get(sender, (self._rate.max_tokens, now))
        return min(self._rate.max_tokens, tokens + (now - at) * self._rate.per_s)

    def _store(self, sender: Hashable, tokens: float) -> None:
        self._counted[sender] = (tokens, self._clock())
        self._counted.move_to_end(sender)
        while len(self._counted) > self._max_buckets:
            self._counted.popitem(last=False)
