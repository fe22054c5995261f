"""Takes turns with the other processes of a round: each measures for some milliseconds, hands over, and waits.

The agent made two named pipes in a folder: it writes GO into `go` for every turn, and reads the outcome from `said`.
Between turns the process sleeps in a read, so that one process at a time uses the machine.
"""

import os

# a turn is much longer than a wake-up, and much shorter than the seconds in which a shared machine changes its speed
TURN_NS = 20_000_000
GO = b"g"
# the process has loaded the model, or is ready for its next turn
MORE = b"m"
# the process has measured, waits for all others, and then traces
TRACE = b"t"
# the process has measured, and ends after one more GO
DONE = b"d"


class Turns:
    """This process's side of taking turns. `count` is the number of turns that it had so far.

    Every method sends the agent a message, blocks until the agent answers, and ends the process where the agent is
    gone. After its windows a process calls `wait_until_all_measured` if it traces, and `finish` at its end.
    """

    def __init__(self, folder: str) -> None:
        # neither call blocks, because the agent holds both ends open
        self._go = os.open(os.path.join(folder, "go"), os.O_RDONLY)
        self._out = os.open(os.path.join(folder, "said"), os.O_WRONLY)
        self.count = 0

    def wait_to_warm_up(self) -> None:
        """Say that the model is loaded, and wait for the turn to warm up, which does not count."""
        self._send(MORE)

    def wait_for_turn(self) -> None:
        self._send(MORE)
        self.count += 1

    def wait_until_all_measured(self) -> None:
        self._send(TRACE)

    def finish(self) -> None:
        self._send(DONE)

    def _send(self, message: bytes) -> None:
        os.write(self._out, message)
        if os.read(self._go, 1) != GO:
            # the agent is gone, and nobody wants the answer
            os._exit(1)


def pin_to_core(core: int | None) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
