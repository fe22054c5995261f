"""A real agent whose equipment measures nothing: it reports facts, works for some seconds or until cancelled, and ends.

Its imports take a second, so that of many it is forked from one process that has them.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from farm.contract.blocks import Lease
from farm.contract.reports import EndReport, Facts, FactsReport, Reply, Report
from tests.idle import IdleEquipment
from worker.agent import logs
from worker.agent.agent import Agent
from worker.agent.connection import enrolment
from worker.agent.connection.gateway import Gateway
from worker.agent.home import NodeHome

FACTS = Facts(hostname="small", os="Linux", arch="x86_64")


class SmallEquipment(IdleEquipment):
    def __init__(self, seconds: float) -> None:
        super().__init__(FACTS)
        self._seconds = seconds

    def measure(
        self,
        lease: Lease,
        *,
        report: Callable[[Report], Reply],
        is_cancelled: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        report(FactsReport(facts=FACTS))
        end = time.monotonic() + self._seconds
        while time.monotonic() < end and not is_cancelled():
            time.sleep(0.02)
        report(EndReport(wall_s=self._seconds))


SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([__name__])


def start(folder: Path, *, url: str, seconds: float) -> ForkServerProcess:
    """Starts one whose home is in the folder, with its lock of the machine and what it says on stderr."""
    process = SERVER.Process(target=_run, args=(folder, url, seconds))
    process.start()
    return process


def _run(folder: Path, url: str, seconds: float) -> None:
    os.environ["ONNXFARM_HOST_LOCK"] = str(folder / "lock")
    with (folder / "stderr").open("ab") as errors:
        os.dup2(errors.fileno(), 2)
    home = NodeHome(folder / "node")
    tail = logs.configure_logging(home.log)
    if not home.is_enrolled:
        enrolment.enrol(home, url=url, code="ofe_12345678", name="small", facts=FACTS)
    with Gateway(url) as gateway:
        sys.exit(Agent(home, gateway=gateway, equipment=SmallEquipment(seconds), tail=tail).run())
