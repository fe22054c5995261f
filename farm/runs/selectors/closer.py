"""A closer look at one cell: the timings of its launches one after another."""

from farm.contract.reports import RoundReport
from farm.rules.judging.summaries import TimingsProblem, unpack_timings
from farm.runs.models import Arm, Report, Run, named
from farm.runs.selectors.evidence import COUNTED


def launches_of(run: Run, name: str) -> list[tuple[int, list[float]]]:
    """Round (from 0) and timings in ms of each launch of the cell, disturbed ones too, as they were taken."""
    arm = Arm.objects.filter(named(run, name)).first()
    if arm is None:
        return []
    rows = Report.objects.filter(attempt__block=arm.block_id, attempt__state__in=COUNTED, kind="round")
    rounds: dict[int, list[float]] = {}
    for body in rows.order_by("attempt__number", "pk").values_list("body", flat=True):
        report = RoundReport.model_validate_json(body)
        for place in report.samples:
            if place.arm == arm.number and place.sample is not None:
                try:
                    rounds[report.round] = unpack_timings(place.sample).tolist()
                except TimingsProblem:
                    continue
    return sorted(rounds.items())
