"""A real agent whose runner is made up: the Celery worker, leases, spool and reports are the node's own.

Every sample says which attempt made it: p50 is the attempt's number in milliseconds, and a little for the round. So a
document whose samples are of two attempts, or of one that was lost, is found out.

Run as `python -m tests.chaos.agent HOME URL CODE NAME`.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from farm.contract.blocks import BlockOrder, Lease
from farm.contract.reports import (
    ArmSample,
    CheckReport,
    EndReport,
    Facts,
    FactsReport,
    Reply,
    Report,
    RoundReport,
    Sample,
)
from farm.rules.judging.summaries import pack_timings
from tests.idle import CPU, IdleEquipment
from worker.agent import logs
from worker.agent.agent import Agent
from worker.agent.connection import enrolment
from worker.agent.connection.gateway import Gateway, GatewayError
from worker.agent.home import NodeHome

# eight rounds take about as long as a lease, so that most faults strike blocks that are measured
ROUND_S = 0.3


def sample_of(attempt: int, round_number: int) -> Sample:
    """A sample that a report of this attempt may hold, and no other."""
    nanoseconds = round((attempt + 0.001 * (round_number + 1)) * 1e6)
    timings = np.full(4, nanoseconds).tolist()
    p50_ms = nanoseconds / 1e6
    return Sample(
        p50_ms=p50_ms, mean_ms=p50_ms, std_ms=0.0, min_ms=p50_ms, max_ms=p50_ms, n=4, timings=pack_timings(timings)
    )


class MadeUpEquipment(IdleEquipment):
    """Measures nothing, in about three seconds a block."""

    def __init__(self, name: str) -> None:
        facts = Facts(hostname=name, os="Linux", arch="x86_64", cpu_model="made up", sandbox="landlock")
        super().__init__(facts)
        self._dice = random.Random(name)

    def measure(
        self,
        lease: Lease,
        *,
        report: Callable[[Report], Reply],
        is_cancelled: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        order = lease.order
        report(FactsReport(facts=self._facts))
        for arm in order.arms:
            report(CheckReport(arm=arm.arm, requested_providers=(CPU,), active_providers=(CPU,)))
        number = order.first_round
        while not is_cancelled():
            time.sleep(ROUND_S)
            if not report(self._round(order, number)).go_on:
                break
            number += 1
        if not is_cancelled():
            report(EndReport(wall_s=1.0))

    def _round(self, order: BlockOrder, number: int) -> RoundReport:
        arms = [arm.arm for arm in order.arms]
        self._dice.shuffle(arms)
        places = (
            ArmSample(arm=arm, position=position, sample=sample_of(order.attempt, number))
            for position, arm in enumerate(arms)
        )
        return RoundReport(round=number, samples=tuple(places))


def main() -> None:
    folder, url, code, name = sys.argv[1:]
    home = NodeHome(Path(folder))
    tail = logs.configure_logging(home.log)
    equipment = MadeUpEquipment(name)
    while not home.is_enrolled:
        try:
            enrolment.enrol(home, url=url, code=code, name=name, facts=equipment.read_facts())
        except GatewayError as problem:
            sys.stderr.write(f"{problem}\n")
            time.sleep(0.5)
    with Gateway(url) as gateway:
        sys.exit(Agent(home, gateway=gateway, equipment=equipment, tail=tail).run())


if __name__ == "__main__":
    main()
