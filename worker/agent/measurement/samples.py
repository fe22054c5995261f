"""Measures the samples of a round, one for each arm and in turns where possible, and repeats disturbed ones."""

import functools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import psutil
from pydantic import BaseModel, Field, ValidationError

from farm.contract.base import digest_json
from farm.contract.cells import Budget
from farm.contract.reasons import Reason
from farm.contract.reports import ArmSample, Sample
from farm.rules.cells import scenarios
from farm.rules.runtimes import providers
from worker.agent.machine import processor
from worker.agent.measurement import interleaving, orders
from worker.agent.measurement.checks import CPU, describe_first_problem, make_runner_order
from worker.agent.measurement.orders import RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm
from worker.agent.measurement.runner_process import Answer, Launcher, make_garbled_reason
from worker.agent.measurement.schedule import BlockSchedule
from worker.agent.measurement.traces import RoundTraces

# a sample with less thread CPU time / wall time is disturbed: something else ran on the core
CPU_SHARE_GATE = 0.95
MAX_REMEASURES = 3
# samples are not repeated where more than this share of the arms is disturbed
BUSY_SHARE = 0.5
# processes that take turns may use this share of the free memory together
MEMORY_SHARE = 0.5


class _Rates(BaseModel):
    """The part of a runner's answer that has the rates it found."""

    rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=16)]


@dataclass
class LoadRates:
    """The rates of requests for cells under load. Cells that differ only in their runtime share them."""

    _rates: dict[str, list[float]] = field(default_factory=dict)
    _reasons: dict[str, Reason] = field(default_factory=dict)

    def search(self, arm: PreparedArm, *, launch: Callable[[], Answer]) -> None:
        """Find the rates of an arm's cell by an extra launch, unless they are known or its scenario needs none.

        Where the launch fails, the reason is kept for `find_reason`, and the next call tries again.
        """
        key = _digest_without_runtime(arm)
        if not scenarios.of_cell(arm.order.cell).looks_for_a_rate or key in self._rates:
            return
        answer = launch()
        try:
            self._rates[key] = _Rates.model_validate(answer.reply).rates
        except ValidationError:
            self._reasons[key] = answer.reason or make_garbled_reason("a search without rates")

    def find(self, arm: PreparedArm) -> list[float]:
        """Return the rates of an arm's cell; empty where they are not known."""
        return self._rates.get(_digest_without_runtime(arm), [])

    def find_reason(self, arm: PreparedArm) -> Reason | None:
        """Return why the search for the rates of an arm's cell failed; None if it did not."""
        key = _digest_without_runtime(arm)
        return None if key in self._rates else self._reasons.get(key)


def _digest_without_runtime(arm: PreparedArm) -> str:
    return digest_json(arm.order.cell.model_dump(mode="json", exclude={"runtime"}))


class _SampleAnswer(BaseModel):
    """The part of a runner's answer that has its sample."""

    sample: dict[str, object]
    phases_ms: dict[str, float] = {}


@dataclass
class Sampler:
    """Measures the rounds of a block."""

    launcher: Launcher
    budget: Budget
    seed: str
    # the core on which one-thread processes run; None: any
    core: int | None = None
    # the peak memory of each arm's check in bytes; an arm without one takes no turns
    peaks: dict[int, int] = field(default_factory=dict)
    pace: BlockSchedule = field(default_factory=BlockSchedule)
    # what launches trace after their windows; None: nothing
    traces: RoundTraces | None = None
    rates: LoadRates = field(default_factory=LoadRates)

    def measure(self, arms: Sequence[PreparedArm], *, round_number: int) -> Iterator[ArmSample]:
        """Measure a sample of each arm, in turns where possible, and yield the samples in the order of `arms`.

        A disturbed sample is repeated up to MAX_REMEASURES times while the schedule allows it, but not where most of
        the arms that take turns are disturbed. The last repeat replaces those before, also if it fails. A launch that
        fails yields a sample with a reason. Samples of arms that take turns are yielded once all are measured.
        """
        for arm in arms:
            self.rates.search(arm, launch=partial(self._launch, arm))
        if not can_take_turns(arms, peaks=self.peaks):
            for position, arm in enumerate(arms):
                yield self._measure_alone(arm, position=position)
            return
        dice = random.Random(f"{self.seed}/{round_number}/turns")
        taken = self._measure_in_turns(list(enumerate(arms)), remeasured=0, dice=dice)
        for again in range(1, MAX_REMEASURES + 1):
            disturbed = [(p, arm) for p, arm in enumerate(arms) if _is_sample_disturbed(taken[p])]
            # if most arms are disturbed, repeating does not help, and the farm judges rounds by processor time
            is_busy = len(disturbed) > BUSY_SHARE * len(arms)
            if not disturbed or is_busy or not self.pace.may_repeat:
                break
            with self.pace.time_repeats():
                taken |= self._measure_in_turns(disturbed, remeasured=again, dice=dice)
        yield from (taken[position] for position in range(len(arms)))

    def _measure_in_turns(
        self, places: Sequence[tuple[int, PreparedArm]], *, remeasured: int, dice: random.Random
    ) -> dict[int, ArmSample]:
        answers = interleaving.measure_in_turns(
            self.launcher, [(arm, self._make_order(arm)) for _, arm in places], dice=dice
        )
        return {
            position: self._add_nodes(parse_sample(answer, arm=arm, position=position, remeasured=remeasured), answer)
            for (position, arm), answer in zip(places, answers, strict=True)
        }

    def _measure_alone(self, arm: PreparedArm, *, position: int) -> ArmSample:
        taken = self._launch_alone(arm, position=position, remeasured=0)
        for again in range(1, MAX_REMEASURES + 1):
            if not _is_sample_disturbed(taken) or not self.pace.may_repeat:
                break
            with self.pace.time_repeats():
                taken = self._launch_alone(arm, position=position, remeasured=again)
        return taken

    def _launch_alone(self, arm: PreparedArm, *, position: int, remeasured: int) -> ArmSample:
        if (reason := self.rates.find_reason(arm)) is not None:
            return ArmSample(arm=arm.arm, position=position, reason=reason)
        answer = self._launch(arm)
        return self._add_nodes(parse_sample(answer, arm=arm, position=position, remeasured=remeasured), answer)

    def _launch(self, arm: PreparedArm) -> Answer:
        return self.launcher.launch(arm, self._make_order(arm), work_dir=arm.scratch)

    def _add_nodes(self, taken: ArmSample, answer: Answer) -> ArmSample:
        """Return the sample with the times of the model's own nodes, if the launch traced them."""
        times = self.traces.parse_times(taken.arm, answer.reply) if self.traces is not None else ()
        if taken.sample is None or not times:
            return taken
        return taken.model_copy(update={"sample": taken.sample.model_copy(update={"nodes_us": times})})

    def _make_scenario_settings(self, arm: PreparedArm) -> dict[str, object]:
        settings = scenarios.runner_settings(arm.order.cell)
        return {**settings, "rates": self.rates.find(arm)} if "rates" in settings else settings

    def _make_order(self, arm: PreparedArm) -> RunnerOrder:
        return {
            **make_runner_order(arm, "sample"),
            "scenario": self._make_scenario_settings(arm),
            "budget": orders.make_budget_part(self.budget),
            "gate_cpu_share": CPU_SHARE_GATE if is_contention_judged(arm) else None,
            "core": self.core if is_contention_judged(arm) else None,
            **(self.traces.make_order_part(arm) if self.traces is not None else {}),
        }


def can_take_turns(arms: Sequence[PreparedArm], *, peaks: dict[int, int]) -> bool:
    """Say whether the processes of these arms may run together.

    True for two or more arms with the plain scenario in host memory, if the peak of each is in `peaks` (bytes), and all
    together fit MEMORY_SHARE of the free memory. Processes would disturb each other on a device, and other scenarios
    need the machine alone.
    """
    if len(arms) < 2 or not hasattr(os, "mkfifo"):
        return False
    if any(arm.arm not in peaks or not _is_on_host(arm) for arm in arms):
        return False
    return sum(peaks[arm.arm] for arm in arms) <= MEMORY_SHARE * psutil.virtual_memory().available


def is_contention_judged(arm: PreparedArm, *, is_emulated: bool | None = None) -> bool:
    """Say whether processor time shows that other programs disturb the arm.

    True on the CPU provider for sequential execution with one thread and a single stream of requests; elsewhere other
    threads do the work. False on an emulated processor, because its latencies are not compared and repeating them takes
    twenty times as long. `is_emulated` None: whether this machine's is.
    """
    cell = arm.order.cell
    return (
        not (_is_emulated() if is_emulated is None else is_emulated)
        and cell.provider == CPU
        and cell.session.threads == 1
        and cell.session.execution_mode == "sequential"
        and scenarios.is_single_stream(cell)
    )


def parse_sample(answer: Answer, *, arm: PreparedArm, position: int, remeasured: int) -> ArmSample:
    """Parse a runner's answer into a sample, or into the reason why there is none.

    `position` is the arm's place in the round, and `remeasured` how often its sample was repeated. The phase `process`
    of the sample is the whole time of the process, and `exit` what no other phase took. An invalid answer gives a
    reason, too.
    """
    if answer.reason is not None:
        return ArmSample(arm=arm.arm, position=position, reason=answer.reason)
    try:
        answered = _SampleAnswer.model_validate(answer.reply)
        phases = dict(answered.phases_ms)
        phases["exit"] = max(0.0, answer.wall_ms - sum(phases.values()))
        phases["process"] = answer.wall_ms
        sample = Sample.model_validate({**answered.sample, "remeasured": remeasured, "phases_ms": phases})
    except ValidationError as error:
        return ArmSample(arm=arm.arm, position=position, reason=make_garbled_reason(describe_first_problem(error)))
    return ArmSample(arm=arm.arm, position=position, sample=sample)


@functools.cache
def _is_emulated() -> bool:
    return processor.is_emulated()


def _is_on_host(arm: PreparedArm) -> bool:
    cell = arm.order.cell
    # OpenVINO is one provider on several devices
    is_elsewhere = cell.provider_options.get("device_type", "CPU").upper() != "CPU"
    return providers.provider_of(cell.provider).device == "cpu" and not is_elsewhere and scenarios.is_plain(cell)


def _is_sample_disturbed(taken: ArmSample) -> bool:
    return taken.sample is not None and taken.sample.is_disturbed
