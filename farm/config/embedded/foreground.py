"""Runs a farm in the foreground of a terminal, until Ctrl-C or another signal ends it."""

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from farm.config.embedded.plan import NotPossibleError
from farm.config.embedded.processes import EmbeddedFarm, Opened
from farm.config.embedded.supervisor import ProcessEndedError

# the farm could not be started, or a process of it ended
EXIT_INFRASTRUCTURE = 3


class EndedBySignal(BaseException):
    """SIGTERM or SIGHUP was received, which ends the farm as Ctrl-C does."""


def keep_running(farm: EmbeddedFarm, opened: Opened) -> NoReturn:
    """Print how to sign in, then watch the farm's processes until an exception ends it. It never returns.

    Raises ProcessEndedError if one of them ends.
    """
    print(f"The farm stays up at {opened.url} until Ctrl-C. Sign in, once, with {opened.link}", file=sys.stderr)
    token = farm.plan.home / "token"
    if "ONNXFARM_TOKEN" not in os.environ and token.exists():
        command = f'export ONNXFARM_SERVER={opened.url} ONNXFARM_TOKEN="$(cat {shlex.quote(str(token))})"'
        print(f"For the `onnxfarm` command, elsewhere: {command}", file=sys.stderr)
    while True:
        farm.supervisor.raise_if_ended()
        time.sleep(1.0)


def print_addresses(farm: EmbeddedFarm, opened: Opened) -> None:
    """Print the farm's addresses, and after how many seconds each part was up, to stderr."""
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in farm.seconds.items())
    print(f"The farm is up at {opened.url} ({steps}).", file=sys.stderr)
    if farm.plan.tls is not None:
        ports = f"{farm.plan.tls.port} (pages) and {farm.plan.tls.gateway_port} (nodes)"
        print(f"Other machines reach it at the ports {ports} of this one; let a firewall pass both.", file=sys.stderr)
    elif farm.plan.public_url:
        targets = f"{farm.plan.url}, and /api/node/ to {farm.plan.gateway_url}"
        print(f"Let the proxy in front of it send everything to {targets}.", file=sys.stderr)


def run_farm(run: Callable[[], int], *, status_if_stopped: int = 0) -> int:
    """Call `run`, which runs a farm, and return the exit status of the command.

    That is the result of `run`; 3 if the farm could not start or a process ended; or `status_if_stopped` if Ctrl-C or a
    signal ended it.
    """
    try:
        with end_on_signals():
            return run()
    except (NotPossibleError, ProcessEndedError) as problem:
        print(f"onnxfarm: {problem}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    except (KeyboardInterrupt, EndedBySignal):
        print("The farm has ended.", file=sys.stderr)
        return status_if_stopped


@contextlib.contextmanager
def end_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise EndedBySignal, and SIGINT KeyboardInterrupt, inside the `with` and after it.

    So the farm ends all its processes.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise EndedBySignal

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    # a shell starts what it runs in the background with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
