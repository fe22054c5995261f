"""Collects the reports of a block so far, whether they are read from storage or come one by one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from farm.contract.reasons import Reason
from farm.contract.reports import (
    AccuracyReport,
    ArmSample,
    CheckReport,
    EndReport,
    EnginesReport,
    Facts,
    FactsReport,
    Report,
    RoundReport,
    Sample,
    TraceReport,
)
from farm.contract.sustained import CurveReport
from farm.rules.cells.metric import Metric
from farm.rules.cells.metrics import JUDGED
from farm.rules.comparing.pooled import Pair

SamplePair = tuple[Sample, Sample]


@dataclass(slots=True)
class Evidence:
    """The reports of the attempts that count. A later report replaces an earlier one of its kind."""

    # by arm, but traces by arm and trace round, and rounds by number
    checks: dict[int, CheckReport] = field(default_factory=dict)
    accuracies: dict[int, AccuracyReport] = field(default_factory=dict)
    curves: dict[int, CurveReport] = field(default_factory=dict)
    traces: dict[tuple[int, int], TraceReport] = field(default_factory=dict)
    rounds: dict[int, RoundReport] = field(default_factory=dict)
    # the facts of the machine, each once: several if it changed between attempts
    facts: list[Facts] = field(default_factory=list)
    engines: EnginesReport | None = None
    end: EndReport | None = None

    @classmethod
    def of(cls, reports: Iterable[Report]) -> "Evidence":
        """Collect the evidence of these reports, in the order in which they were made."""
        evidence = cls()
        for report in reports:
            evidence.take(report)
        return evidence

    def take(self, report: Report) -> None:
        """Add a report. It replaces an earlier one of its kind, arm and round; facts are kept once each."""
        match report:
            case RoundReport():
                self.rounds[report.round] = report
            case EnginesReport():
                self.engines = report
            case FactsReport():
                self.facts += [] if report.facts in self.facts else [report.facts]
            case EndReport():
                self.end = report
            case CheckReport() | TraceReport() | AccuracyReport() | CurveReport():
                self._take_arm_report(report)

    def _take_arm_report(self, report: CheckReport | TraceReport | AccuracyReport | CurveReport) -> None:
        match report:
            case CheckReport():
                self.checks[report.arm] = report
            case TraceReport():
                self.traces[report.arm, report.trace_round] = report
            case AccuracyReport():
                self.accuracies[report.arm] = report
            case _:
                self.curves[report.arm] = report

    @property
    def is_out_of_time(self) -> bool:
        """Whether the last round says that no further round fits the node's time."""
        return bool(self.rounds) and self.rounds[max(self.rounds)].is_last

    def failure(self, arm: int) -> Reason | None:
        """Return why the arm failed: the reason of its check, or else that of its first launch that failed.

        None where nothing failed.
        """
        check = self.checks.get(arm)
        if check is not None and check.reason is not None:
            return check.reason
        return next((launch.reason for launch in self._launches(arm) if launch.reason is not None), None)

    def samples(self, arm: int) -> list[Sample]:
        """List the arm's samples in the order of rounds, disturbed ones too."""
        return [launch.sample for launch in self._launches(arm) if launch.sample is not None]

    def sample_pairs(self, baseline: int, candidate: int) -> dict[int, SamplePair]:
        """Return (baseline, candidate) samples by number of round, disturbed ones too.

        Rounds in which an arm has no sample are left out.
        """
        pairs = {}
        for number, report in sorted(self.rounds.items()):
            samples = {launch.arm: launch.sample for launch in report.samples}
            old, new = samples.get(baseline), samples.get(candidate)
            if old is not None and new is not None:
                pairs[number] = (old, new)
        return pairs

    def pairs(
        self, baseline: int, candidate: int, *, metric: Metric = JUDGED, with_disturbed: bool = False
    ) -> list[Pair]:
        """List (baseline, candidate) figures of the metric, p50 in ms by default, in the order of rounds.

        Rounds with a disturbed sample are left out, unless `with_disturbed`. So are rounds in which a sample lacks the
        figure.
        """
        samples = self.sample_pairs(baseline, candidate).values()
        counting = [(old, new) for old, new in samples if with_disturbed or not (old.is_disturbed or new.is_disturbed)]
        return read_pairs(counting, metric.read_figure)

    def traces_of(self, arm: int) -> dict[int, TraceReport]:
        """Return the arm's traces that worked and have operators, by trace round."""
        return {
            trace_round: trace
            for (traced_arm, trace_round), trace in sorted(self.traces.items())
            if traced_arm == arm and trace.reason is None and trace.operators
        }

    def prompt_traces_of(self, arm: int) -> dict[int, TraceReport]:
        """Return the arm's traces reduced to the prompt, by trace round; empty unless the arm generates."""
        return {
            trace_round: trace.model_copy(update={"run_us": prompt.run_us, "operators": prompt.operators})
            for trace_round, trace in self.traces_of(arm).items()
            if (prompt := trace.prompt) is not None and prompt.operators
        }

    def node_times(self, arm: int) -> dict[int, tuple[float, ...]]:
        """Return by round the times in µs of the nodes that the arm's first trace names, in the trace's order.

        Rounds without a time for each of these nodes are left out. Empty without a first trace.
        """
        first = self.traces_of(arm).get(0)
        if first is None:
            return {}
        nodes = len({operator.node for operator in first.operators})
        return {
            number: launch.sample.nodes_us
            for number, report in sorted(self.rounds.items())
            for launch in report.samples
            if launch.arm == arm and launch.sample is not None and len(launch.sample.nodes_us) == nodes
        }

    def _launches(self, arm: int) -> list[ArmSample]:
        return [launch for _, report in sorted(self.rounds.items()) for launch in report.samples if launch.arm == arm]


def read_pairs(samples: Iterable[SamplePair], read: Callable[[Sample], float | None]) -> list[Pair]:
    """Read a figure of both samples of each pair; pairs in which a sample lacks it are left out."""
    figures = [(read(old), read(new)) for old, new in samples]
    return [(old, new) for old, new in figures if old is not None and new is not None]
