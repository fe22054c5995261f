"""Raw timings as people find them."""

from collections.abc import Iterator

from farm.base.refusals import Gone, Missing
from farm.rules.judging.evidence import Evidence
from farm.rules.reporting import timings
from farm.runs.models import Arm, Run, named
from farm.runs.selectors.evidence import counted_reports
from farm.runs.selectors.retention import removed_timings


def timing_lines(run: Run, name: str) -> Iterator[str]:
    """Every timing of one cell as lines of CSV.

    Raises Missing for a cell that was never in a block, Gone where retention removed them.
    """
    if gone := removed_timings(run):
        raise Gone(gone, code="retention")
    arm = Arm.objects.filter(named(run, name)).select_related("block").first()
    if arm is None:
        raise Missing(f"Run {run.pk} has no measured cell {name!r}.", hint="Its cells are listed by its results.")
    return timings.csv_lines(Evidence.of(counted_reports(arm.block)), arm.number)
