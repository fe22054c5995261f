"""A clock that only advances when a test says so."""


class Clock:
    """A replacement of `time.monotonic`, when called, and of `time.sleep`, which returns at once.

    `now`: the seconds that it shows; `ns` returns them as whole nanoseconds. `pauses`: the seconds of each sleep so
    far.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def ns(self) -> int:
        return round(self.now * 1e9)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Advance the clock. Raises ValueError for negative seconds."""
        if seconds < 0:
            raise ValueError(f"A clock does not go back: it was told to advance by {seconds:g} s.")
        self.now += seconds
