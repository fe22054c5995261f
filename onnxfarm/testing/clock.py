"""A clock that passes when it is told to."""


class Clock:
    """Stands in for `time.monotonic` and `time.sleep`: `Clock()` is called for the seconds, sleeping only counts."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        # every pause that was asked for, in seconds
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def ns(self) -> int:
        return round(self.now * 1e9)

    def sleep(self, seconds: float) -> None:
        """Pass at once, in place of `time.sleep`."""
        self.pauses.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ValueError for time that would run backwards."""
        if seconds < 0:
            raise ValueError(f"A clock does not go back: it was told to advance by {seconds:g} s.")
        self.now += seconds
