"""Writes the raw timings behind a cell as a table: every timed inference, or evenly spaced ones of very many."""

from collections.abc import Iterator

from farm.rules.judging.evidence import Evidence
from farm.rules.judging.summaries import unpack_timings

HEAD = "round,inference,ns\n"


def format_csv_lines(evidence: Evidence, arm: int) -> Iterator[str]:
    """Yield the text of a CSV file: the round (from 0), the number of the inference in its launch, and nanoseconds.

    Where a node kept every k-th of very many timings, the numbers of the inferences rise in steps of k. Disturbed
    samples are included; with several sessions at once the inferences of one session follow those of another.
    """
    yield HEAD
    for number, report in sorted(evidence.rounds.items()):
        for place in report.samples:
            if place.arm != arm or place.sample is None:
                continue
            kept = unpack_timings(place.sample)
            step = -(-place.sample.n // len(kept))
            yield "".join(f"{number},{step * index},{round(value * 1e6)}\n" for index, value in enumerate(kept))
