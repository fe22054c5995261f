"""What the agent itself takes between two samples, and where a quick sample's process spends its time.

    python -m tests.bench.agent_gap [--rounds 8] [--seed 1]

A block of two runtimes of the sample transformer, executed as a node executes it. Its arms take turns, so the gap runs
from the moment one process is ready for its turns to the start of the next one's; interpreter, sandbox, import, session
and the turns of others are told apart, as medians.
"""

import statistics
import tempfile
from pathlib import Path

from farm.contract.reports import EndReport, RoundReport, Sample
from tests.bench.figure import publish
from tests.bench.workbench import write_fixed
from tests.integration.worker.making import Workbench, of_kind
from tests.options import read_options

TARGET_S = 0.1


def main() -> None:
    """Prints the figures as JSON."""
    options = read_options(__doc__, rounds=8, seed=1)
    with tempfile.TemporaryDirectory() as name:
        bench = Workbench(Path(name))
        model, inputs = write_fixed("transformer", Path(name))
        arms = [
            bench.arm(number, model, inputs=inputs, runtime=f"onnxruntime=={version}")
            for number, version in enumerate(("1.29.0", "1.31.1"))
        ]
        reports = bench.execute(arms, rounds=options.rounds, seed=options.seed)
    samples = [one.sample for report in of_kind(reports, RoundReport) for one in report.samples if one.sample]
    gap_s = of_kind(reports, EndReport)[0].gap_s
    publish(
        claim=f"The agent spends under {TARGET_S} s between two samples.",
        seed=options.seed,
        figures={
            "gap_s": gap_s,
            "is_met": gap_s is not None and gap_s < TARGET_S,
            "samples": len(samples),
            "disturbed_again": sum(sample.remeasured for sample in samples),
            "phases_ms": {phase: round(median_ms(samples, phase), 1) for phase in samples[0].phases_ms},
        },
    )


def median_ms(samples: list[Sample], phase: str) -> float:
    return statistics.median(sample.phases_ms[phase] for sample in samples)


if __name__ == "__main__":
    main()
