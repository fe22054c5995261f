"""What a story of containers says as it goes on, and how long it waits for what has to come."""

import time
from collections.abc import Callable


class Progress:
    """Counts the seconds from its beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.0f} s  {text}", flush=True)

    def until(
        self, what: str, is_so: Callable[[], bool], *, seconds: float = 240, moves: Callable[[], str] | None = None
    ) -> None:
        """Waits until something holds; an AssertionError names what did not come.

        With `moves` the seconds begin anew each time that it says something else: what goes on, however slowly on a
        machine that others use, is waited for; what stands still is not.
        """
        began, seen = time.monotonic(), ""
        while not is_so():
            if moves is not None and (now := moves()) != seen:
                began, seen = time.monotonic(), now
            assert time.monotonic() < began + seconds, f"{what} did not come: nothing moved for {seconds:.0f} s\n{seen}"
            time.sleep(1)
        self.say(f"{what}: there")
