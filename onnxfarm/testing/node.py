"""A node for tests of farms. It follows the protocol, and reports times that the test sets."""

import base64
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from typing import Self

from farm.contract import node as messages
from farm.contract import reports, signatures
from farm.contract.blocks import ArmOrder, Lease
from farm.contract.cells import CellSpec
from farm.contract.version import CONTRACT_VERSION
from farm.rules.judging.summaries import pack_timings
from worker.agent.connection.gateway import Gateway

CPU = "CPUExecutionProvider"
# the number of inferences in each made-up sample
TIMINGS = 50

# a function of a cell and the number of a round, which returns the p50 in milliseconds
Latency = Callable[[CellSpec, int], float]


def always_1_ms(cell: CellSpec, number: int) -> float:
    return 1.0


class FakeNode:
    """A node of the farm at `url`, which may be real or fake.

    `latency_ms`: returns the p50 of a cell in a round. `spread`: the relative standard deviation around it. `tags`: the
    hardware tags that the node claims, with the evidence for each. The node sleeps as long as its inferences would
    take, because a farm checks that. Each method raises `worker.agent.connection.gateway.GatewayError` if the farm
    refuses or does not answer.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "fake",
        latency_ms: Latency = always_1_ms,
        spread: float = 0.01,
        seed: int = 1,
    ) -> None:
        self.name = name
        self.facts = reports.Facts(hostname=name, os=platform.system(), arch=platform.machine(), sandbox="landlock")
        self.tags = {"cpu": "made up"}
        self.providers: tuple[str, ...] = (CPU,)
        self.gateway = Gateway(url)
        self._latency_ms, self._spread = latency_ms, spread
        self._dice = random.Random(seed)
        self._private = signatures.make_private_key()
        self._node_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.close()

    def enrol(self, code: str) -> messages.Enrolled:
        """Join the farm with a one-time code. Somebody may have to approve the node before `sign_in` works."""
        enrolment = messages.Enrolment(
            code=code,
            name=self.name,
            public_key=signatures.derive_public_key(self._private),
            facts=self.facts,
            contract_version=CONTRACT_VERSION,
        )
        enrolled = self.gateway.enrol(enrolment)
        self._node_id = enrolled.node_id
        return enrolled

    def sign_in(self) -> None:
        """Get a secret from the farm, signed for by the node's key, and use it in later requests."""
        moment = int(time.time())
        signature = signatures.sign(self._private, messages.make_secret_message(self._node_id, moment))
        request = messages.SecretRequest(node_id=self._node_id, signed_at=moment, signature=signature)
        self.gateway.use_secret(self.gateway.request_secret(request).secret)

    def hello(self) -> messages.Welcome:
        """Send the node's facts, tags and providers to the farm, and return its answer."""
        return self.gateway.hello(
            messages.Hello(
                contract_version=CONTRACT_VERSION, facts=self.facts, tags=self.tags, providers=self.providers
            )
        )

    def work(self, *, wait_s: float = 0.0) -> str | None:
        """Wait for a block, measure it, and return its id; None if none is offered within `wait_s` seconds.

        It is measured until the farm stops it, or for all its rounds. Raises ValueError if the farm offers a message
        that is no order to measure.
        """
        offer = self.gateway.receive_message(wait_s=wait_s)
        if offer is None:
            return None
        block, attempt = parse_offer(offer)
        self._measure(self.gateway.claim(block, attempt=attempt))
        return block

    def _measure(self, lease: Lease) -> None:
        order = lease.order
        self._send_report(lease, reports.FactsReport(facts=self.facts))
        reply = reports.Reply()
        for arm in order.arms:
            providers = (arm.cell.provider,)
            reply = self._send_report(
                lease, reports.CheckReport(arm=arm.arm, requested_providers=providers, active_providers=providers)
            )
        number = order.first_round
        while reply.go_on and number < order.first_round + order.max_rounds:
            samples = self._make_round(order.arms, number)
            measured = [place.sample for place in samples if place.sample is not None]
            time.sleep(sum(sample.n * sample.mean_ms for sample in measured) / 1000.0)
            reply = self._send_report(lease, reports.RoundReport(round=number, samples=samples))
            number += 1
        self._send_report(lease, reports.EndReport(wall_s=0.0))

    def _make_round(self, arms: tuple[ArmOrder, ...], number: int) -> tuple[reports.ArmSample, ...]:
        order = self._dice.sample(arms, len(arms))
        return tuple(
            reports.ArmSample(arm=arm.arm, position=place, sample=self._make_sample(self._latency_ms(arm.cell, number)))
            for place, arm in enumerate(order)
        )

    def _make_sample(self, latency_ms: float) -> reports.Sample:
        """Make the sample of a launch: a speed is drawn for the launch, and its inferences vary a little around it."""
        own_ns = latency_ms * 1e6 * max(0.1, self._dice.gauss(1.0, self._spread))
        times = sorted(max(1, round(own_ns * self._dice.gauss(1.0, self._spread / 10))) for _ in range(TIMINGS))
        return reports.Sample(
            p50_ms=statistics.median(times) / 1e6,
            mean_ms=statistics.fmean(times) / 1e6,
            std_ms=statistics.stdev(times) / 1e6,
            min_ms=times[0] / 1e6,
            max_ms=times[-1] / 1e6,
            n=TIMINGS,
            timings=pack_timings(times),
        )

    def _send_report(self, lease: Lease, report: reports.Report) -> reports.Reply:
        order = lease.order
        return self.gateway.report(order.block, attempt=order.attempt, token=lease.token, report=report)


def parse_offer(offer: messages.Offer) -> tuple[str, int]:
    """Return the block's id and the number of the attempt in an offer. Raises ValueError for another message."""
    try:
        kwargs = json.loads(base64.b64decode(str(offer.message["body"])))[1]
        return str(kwargs["block"]), int(kwargs["attempt"])
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise ValueError(f"This message of {offer.queue} is not an order to measure: {problem!r}.") from problem
