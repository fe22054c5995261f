"""Runs a farm in the foreground of a terminal until Ctrl-C, or a signal that ends it in the same way."""

import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType

from farm.config.embedded.plan import NotPossibleError
from farm.config.embedded.processes import EmbeddedFarm, Opened
from farm.config.embedded.supervisor import ProcessEndedError

# the farm could not be started, or a process of it ended
EXIT_INFRASTRUCTURE = 3


class EndedBySignal(BaseException):
    """SIGTERM or SIGHUP was received: the farm ends as it does on Ctrl-C."""


def keep_running(farm: EmbeddedFarm, opened: Opened) -> None:
    """Print how to sign in, then watch the processes for ever; it never returns.

    Raises ProcessEndedError when one of them ends.
    """
    print(f"The farm stays up at {opened.url} until Ctrl-C. Sign in, once, with {opened.link}", file=sys.stderr)
    token = farm.plan.home / "token"
    if "ONNXFARM_TOKEN" not in os.environ and token.exists():
        words = f'export ONNXFARM_SERVER={opened.url} ONNXFARM_TOKEN="$(cat {shlex.quote(str(token))})"'
        print(f"For the `onnxfarm` command, elsewhere: {words}", file=sys.stderr)
    while True:
        farm.supervisor.raise_if_ended()
        time.sleep(1.0)


def print_addresses(farm: EmbeddedFarm, opened: Opened) -> None:
    """Print to stderr the farm's addresses and how long each of its parts took to start."""
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in farm.seconds.items())
    print(f"The farm is up at {opened.url} ({steps}).", file=sys.stderr)
    if farm.plan.tls is not None:
        ports = f"{farm.plan.tls.port} (pages) and {farm.plan.tls.gateway_port} (nodes)"
        print(f"Other machines reach it at the ports {ports} of this one; let a firewall pass both.", file=sys.stderr)
    elif farm.plan.public_url:
        words = f"{farm.plan.url}, and /api/node/ to {farm.plan.gateway_url}"
        print(f"Let the proxy in front of it send everything to {words}.", file=sys.stderr)


def run_farm(run: Callable[[], int], *, status_if_stopped: int = 0) -> int:
    """Call `run`, which runs a farm, and return the exit status.

    That is what `run` returned, 3 where the farm failed, or `status_if_stopped` where Ctrl-C or a signal ended it.
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
    """Within this context SIGTERM and SIGHUP raise EndedBySignal, so that every process of the farm is ended.

    The handlers stay after it.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise EndedBySignal

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    # a shell starts what it runs in the background with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
