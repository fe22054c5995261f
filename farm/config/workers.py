"""The farm's own Celery workers: which queues each of them serves, and by how many threads.

prepare  makes what takes minutes: inspection, variants, references, outlines. As many of them as there is work for.
ticks    beat, the duties that keep the farm going, and messages to channels. Exactly one of a farm beats.

They are two processes because whatever shares threads with makings waits for makings. Inside `ticks` no kind of work
can take the threads of another: each tick runs once at a time (farm.base.ticks) and so many messages are sent at
once (farm.alerts.tasks), which together are less than all of its threads.
"""

import sys
from collections.abc import Sequence
from typing import Final

from farm.contract.version import PREPARE_QUEUE, TELL_QUEUE, TICK_QUEUE

PREPARING_THREADS: Final = 4
# the ticks of CELERY_BEAT_SCHEDULE, farm.alerts.tasks.AT_ONCE messages, and one for a tick whose thread hangs
TICKING_THREADS: Final = 11
_CELERY: Final = (sys.executable, "-m", "celery", "-A", "farm.config.celery")
_QUIET: Final = ("--pool", "threads", "--without-gossip", "--without-mingle", "--loglevel", "INFO")


def prepare() -> list[str]:
    """The command line of a worker that makes things."""
    return _worker("prepare", [PREPARE_QUEUE], threads=PREPARING_THREADS)


def ticks() -> list[str]:
    """The command line of the worker that beats, ticks and tells."""
    return [*_worker("ticks", [TICK_QUEUE, TELL_QUEUE], threads=TICKING_THREADS), "--ticking"]


def _worker(name: str, queues: Sequence[str], *, threads: int) -> list[str]:
    own = ["--hostname", f"{name}@%h", "--queues", ",".join(queues), "--concurrency", str(threads)]
    return [*_CELERY, "worker", *own, *_QUIET]
