"""Writes the raw timings behind a cell as a table: every timed inference, or evenly spaced ones of very many."""

from collections.abc import Iterator

from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import unpack_timings

HEAD = "round,inference,ns\n"


def format_csv_lines(evidence: Evidence, arm: int) -> Iterator[str]:
    """Yield the text of a CSV file: the round (from 0), the number of the inference in its launch, and nanoseconds.

    The first text is HEAD. Where a node kept every k-th of very many timings, the numbers of the inferences rise in
    steps of k. Disturbed samples are included; with several sessions at once the inferences of one session follow those
    of another. Raises TimingsProblem, while iterating, where timings cannot be unpacked.
    """
    yield HEAD
    for number, report in sorted(evidence.rounds.items()):
        for launch in report.samples:
            if launch.arm != arm or launch.sample is None:
                continue
            timings_ms = unpack_timings(launch.sample)
            step = -(-launch.sample.n // len(timings_ms))
            yield "".join(f"{number},{step * index},{round(ms * 1e6)}\n" for index, ms in enumerate(timings_ms))
