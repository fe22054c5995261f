"""Measures a block, from its order to its end report: facts, checks, first traces, rounds, further traces.

Every launch is a fresh, sandboxed process, which can end its cell, but never the block. The caller holds the machine's
lock (worker.agent.machine.host_lock).
"""

import random
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from farm.contract.blocks import BlockOrder
from farm.contract.cells import Budget
from farm.contract.reasons import CellStatus, Reason, ReasonCode
from farm.contract.reports import ArmSample, CheckReport, EndReport, FactsReport, Reply, Report, RoundReport
from farm.rules.planning.estimates import ROUNDS
from worker.agent.installation.environment import NodeEnvironment
from worker.agent.machine import affinity
from worker.agent.measurement import checks, divergence, engines, evaluation, samples, schedule, sustained, traces
from worker.agent.measurement.prepared_arms import PreparedArm, prepare_arms
from worker.agent.measurement.runner_process import CANCELLED, Launcher
from worker.agent.measurement.schedule import BlockSchedule

SendReport = Callable[[Report], Reply]
_FAILED = (CellStatus.FAILED, CellStatus.CRASHED, CellStatus.TIMEOUT)


def execute_block(
    order: BlockOrder, *, report: SendReport, environment: NodeEnvironment, is_cancelled: Callable[[], bool]
) -> None:
    """Measure a block, and call `report` with each of its reports, an EndReport last.

    A block with questions about divergences only answers them, and measures nothing. A block that is cancelled, takes
    too long, or fails fast ends early, with the reason in its EndReport. A block that takes too long but has a complete
    round ends without a reason. An exception of `report` (a lost lease) and an OSError (a full disk) end the block
    without an EndReport, and are raised.
    """
    folder = Path(environment.work_dir.resolve()) / f"block-{order.attempt}-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    try:
        _Block(order, report=report, environment=environment, folder=folder, is_cancelled=is_cancelled).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Stop(Exception):
    """Ends the block now, for a reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


class _Block:
    """The state of a block that is being measured."""

    def __init__(
        self,
        order: BlockOrder,
        *,
        report: SendReport,
        environment: NodeEnvironment,
        folder: Path,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._order = order
        self._report = report
        self._environment = environment
        self._folder = folder
        self._is_cancelled = is_cancelled
        self._began = time.monotonic()
        # arms that can still be measured
        self._alive: dict[int, PreparedArm] = {}
        self._peaks: dict[int, int] = {}
        self._launcher = self._make_launcher(order.runner_timeout_s)
        min_rounds = ROUNDS[order.budget].minimum - order.first_round
        self._schedule = BlockSchedule(order.promised_s, limit_s=order.block_timeout_s, min_rounds=min_rounds)
        self._has_rounds = False
        self._mapper = traces.Mapper(work_dir=folder, memory_bytes=order.memory_bytes)
        self._round_traces = traces.RoundTraces() if order.is_tracing_rounds else None

    def run(self) -> None:
        reason = None
        with self._launcher:
            try:
                self._measure()
            except _Stop as stop:
                # a block that took too long is still usable once it has a round
                is_usable = stop.reason.code == ReasonCode.TIMEOUT and self._has_rounds
                reason = None if is_usable else stop.reason
        gaps = self._launcher.gaps_s
        self._report(
            EndReport(
                reason=reason, wall_s=time.monotonic() - self._began, gap_s=statistics.median(gaps) if gaps else None
            )
        )

    def _measure(self) -> None:
        self._report(FactsReport(facts=self._environment.read_facts()))
        self._environment.say("preparing runtimes and files")
        ready, refused = prepare_arms(
            self._order, environment=self._environment, folder=self._folder, is_cancelled=self._is_cancelled
        )
        self._stop_if_over()
        if self._order.divergences:
            self._answer_questions(ready, refused)
            return
        for arm in self._order.arms:
            if arm.arm in refused:
                self._report_check(CheckReport(arm=arm.arm, reason=refused[arm.arm]))
        # the promised time does not include installing and fetching
        self._schedule.begin()
        self._check_arms(ready)
        with self._schedule.time_traces(len(self._alive)):
            self._trace_first()
        self._evaluate_arms()
        reply = self._measure_rounds()
        self._trace_again(reply)
        self._store_compiled_models()
        self._measure_curves()

    def _check_arms(self, ready: list[PreparedArm]) -> None:
        for arm in ready:
            self._say(arm, "checking")
            check = sustained.add_energy(checks.run_check(self._launcher, arm), self._launcher, arm)
            self._stop_if_over()
            if check.reason is None:
                self._alive[arm.arm] = arm
                if check.peak_memory_bytes is not None:
                    self._peaks[arm.arm] = check.peak_memory_bytes
            self._report_check(check)
        comparison = engines.compare_engines(self._launcher, list(self._alive.values()))
        self._stop_if_over()
        if comparison is not None:
            self._report(comparison)

    def _answer_questions(self, ready: list[PreparedArm], refused: dict[int, Reason]) -> None:
        """Answer the questions about divergences of a block that was measured before, and measure nothing else."""
        if self._environment.search is None:
            text = "This agent was started without a search for divergent nodes: start it with `onnxfarm node start`."
            raise _Stop(Reason(code=ReasonCode.NOT_SUPPORTED, text=text))
        questions = divergence.BlockQuestions(
            ready=ready,
            refused=refused,
            launcher=self._launcher,
            folder=self._folder,
            store=self._environment.store_part,
            search=self._environment.search,
        )
        self._environment.say("looking between the nodes")
        for report in divergence.answer_questions(self._order, questions):
            self._stop_if_over()
            self._report(report)

    def _report_check(self, check: CheckReport) -> None:
        self._report(check)
        self._stop_if_fail_fast(check.arm, check.reason)

    def _trace_first(self) -> None:
        if self._order.budget is Budget.GLANCE:
            return
        profiled = []
        for arm in self._alive.values():
            if not arm.is_session:
                continue
            self._say(arm, "tracing")
            profiled.append(traces.profile_arm(self._launcher, arm, trace_round=0))
            self._stop_if_over()
        self._report_traces(profiled)

    def _evaluate_arms(self) -> None:
        """Judge the arms that have labelled data. A cell that cannot be judged is still measured."""
        arms, judge = list(self._alive.values()), self._environment.judge
        for report in evaluation.evaluate_arms(self._launcher, arms, say=self._say, judge=judge):
            self._stop_if_over()
            self._report(report)

    def _store_compiled_models(self) -> None:
        """Store the models that providers compiled, for download. A cell whose model cannot be stored still counts."""
        store = self._environment.store_compiled
        if store is None:
            return
        for arm in engines.select_compiled_arms(self._alive.values()):
            self._say(arm, "keeping what was compiled")
            engines.store_compiled_model(self._launcher, arm, store=store)
            self._stop_if_over()

    def _report_traces(self, profiled: list[traces.Profiled]) -> None:
        """Map the traces to the model's own nodes, and report them. A cell whose trace failed is still measured."""
        self._mapper.read_graphs([trace for trace in profiled if trace.reply is not None])
        has_edges = self._round_traces is not None
        for trace in profiled:
            store = self._environment.store_trace
            self._report(traces.make_report(trace, self._mapper, store=store, has_edges=has_edges))
            if self._round_traces is not None:
                self._round_traces.remember_nodes(trace, self._mapper.map_origins(trace))
            traces.delete_files(trace)

    def _measure_rounds(self) -> Reply:
        reply = Reply(go_on=True)
        first = self._order.first_round
        sampler = samples.Sampler(
            self._launcher,
            budget=self._order.budget,
            seed=f"{self._order.block}/{self._order.seed}",
            core=affinity.choose_core(),
            peaks=self._peaks,
            pace=self._schedule,
            traces=self._round_traces,
        )
        for number in range(first, first + self._order.max_rounds):
            if not self._alive:
                break
            with self._schedule.time_round():
                taken = tuple(self._measure_round(number, sampler))
            is_last = not self._schedule.has_time_for_round
            reply = self._report(RoundReport(round=number, samples=taken, is_last=is_last))
            self._has_rounds = True
            if not reply.go_on:
                break
        return reply

    def _measure_round(self, number: int, sampler: samples.Sampler) -> list[ArmSample]:
        # between two rounds the agent waits for the farm's answer, which must not count as the agent's own time
        self._launcher.forget_last_process()
        order = schedule.order_arms(list(self._alive), round_number=number, seed=sampler.seed)
        arms = [self._alive[arm] for arm in order]
        self._say(arms[0], f"round {number + 1}")
        taken = []
        for sample in sampler.measure(arms, round_number=number):
            self._stop_if_over()
            if sample.reason is not None:
                self._alive.pop(sample.arm, None)
            taken.append(sample)
            if sample.reason is not None and self._order.fail_fast:
                self._report(RoundReport(round=number, samples=tuple(taken)))
                self._stop_if_fail_fast(sample.arm, sample.reason)
        return taken

    def _trace_again(self, reply: Reply) -> None:
        """Take the interleaved traces for attribution that the last reply asked for, while time remains."""
        dice = random.Random(f"{self._order.block}/{self._order.seed}/traces")
        alive = {number: arm for number, arm in self._alive.items() if arm.is_session}
        arms = [alive[arm] for arm in reply.trace_arms if arm in alive]
        # the farm names the arms of the most important change first
        arms = arms[: self._schedule.count_traceable_arms(len(arms), rounds=reply.trace_rounds)]
        for trace_round in range(1, reply.trace_rounds + 1):
            if not self._schedule.has_time_for_traces(len(arms)):
                break
            dice.shuffle(arms)
            for arm in arms:
                self._say(arm, f"trace {trace_round + 1}")
                self._report_traces([traces.profile_arm(self._launcher, arm, trace_round=trace_round)])
                self._stop_if_over()

    def _measure_curves(self) -> None:
        """Measure the curve of each cell over `sustained_s` seconds, one after the other; 0 measures none."""
        total_s = self._order.sustained_s
        distinct: dict[str, PreparedArm] = {}
        for arm in self._alive.values() if total_s else ():
            distinct.setdefault(arm.order.cell.digest, arm)
        with self._make_launcher(self._order.runner_timeout_s + total_s) as launcher:
            for arm in distinct.values():
                self._say(arm, f"sustained for {total_s / 60:.3g} min")
                curve = sustained.measure_curve(launcher, arm, total_s=total_s)
                self._stop_if_over()
                self._report(curve)

    def _make_launcher(self, timeout_s: float) -> Launcher:
        stage, memory_bytes = self._environment.stage, self._order.memory_bytes
        return Launcher(stage=stage, timeout_s=timeout_s, memory_bytes=memory_bytes, is_cancelled=self._is_cancelled)

    def _say(self, arm: PreparedArm, activity: str) -> None:
        self._environment.say(f"{activity}: {arm.description}")

    def _stop_if_over(self) -> None:
        if self._is_cancelled():
            raise _Stop(CANCELLED)
        limit_s = self._order.block_timeout_s
        if time.monotonic() - self._began > limit_s:
            text = f"The block took longer than its limit of {limit_s:.0f} s; give it fewer cells or more time."
            raise _Stop(Reason(code=ReasonCode.TIMEOUT, text=text))

    def _stop_if_fail_fast(self, arm: int, reason: Reason | None) -> None:
        if self._order.fail_fast and reason is not None and reason.status in _FAILED:
            text = f"Arm {arm} ended as {reason.status} and the matrix says fail-fast: {reason.text}"
            raise _Stop(Reason(code=ReasonCode.FAIL_FAST, text=text[:2000]))
