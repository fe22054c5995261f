"""A real agent whose equipment measures nothing: it reports facts, works for SECONDS or until cancelled, and ends.

Run as `python -m tests.integration.small_agent HOME URL SECONDS`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from farm.contract.blocks import Lease
from farm.contract.reports import EndReport, Facts, FactsReport, Reply, Report
from tests.idle import IdleEquipment
from worker.agent import logs
from worker.agent.agent import Agent
from worker.agent.home import NodeHome
from worker.agent.line import enrolment
from worker.agent.line.gateway import Gateway

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


def main() -> None:
    folder, url, seconds = sys.argv[1:]
    home = NodeHome(Path(folder))
    tail = logs.set_up(home.log)
    if not home.is_enrolled:
        enrolment.enrol(home, url=url, code="ofe_12345678", name="small", facts=FACTS)
    with Gateway(url) as gateway:
        sys.exit(Agent(home, gateway=gateway, equipment=SmallEquipment(float(seconds)), tail=tail).run())


if __name__ == "__main__":
    main()
