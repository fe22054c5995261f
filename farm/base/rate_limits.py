"""How often somebody may ask: a bucket of tokens each, in bounded memory.

A bucket holds `max_tokens` tokens and is filled again by `per_s` a second; a request takes one, and is refused while
there is none. A bucket that was left alone is full again, so that forgetting the one that was used longest ago costs
little.
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
    """`max_tokens` at once, and `per_s` a second from then on."""

    max_tokens: float
    per_s: float


class Buckets:
    """Tokens of many askers under one rate."""

    def __init__(
        self, rate: Rate, *, max_buckets: int = MAX_BUCKETS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._max_buckets, self._clock = rate, max_buckets, clock
        # asker → tokens, and when they were counted; the one used longest ago comes first
        self._counted: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._counted)

    def take(self, asker: Hashable, tokens: float = 1.0) -> float:
        """Takes tokens; the seconds until there would be one, with nothing taken, when there is none.

        A request that costs more than the bucket holds leaves a debt, which later ones wait for.
        """
        with self._lock:
            left = self._left(asker)
            if left < 1.0:
                return (1.0 - left) / self._rate.per_s
            self._keep(asker, left - tokens)
            return 0.0

    def charge(self, asker: Hashable, tokens: float) -> None:
        """Takes tokens whatever there is, for a cost that is known afterwards; a negative number gives back."""
        with self._lock:
            self._keep(asker, min(self._rate.max_tokens, self._left(asker) - tokens))

    def forget(self, asker: Hashable) -> None:
        with self._lock:
            self._counted.pop(asker, None)

    def _left(self, asker: Hashable) -> float:
        now = self._clock()
        tokens, at = self._counted.get(asker, (self._rate.max_tokens, now))
        return min(self._rate.max_tokens, tokens + (now - at) * self._rate.per_s)

    def _keep(self, asker: Hashable, tokens: float) -> None:
        self._counted[asker] = (tokens, self._clock())
        self._counted.move_to_end(asker)
        while len(self._counted) > self._max_buckets:
            self._counted.popitem(last=False)
