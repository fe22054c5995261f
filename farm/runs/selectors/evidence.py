"""Reads the reports of a block that count for its verdicts."""

from django.db.models import Q
from pydantic import TypeAdapter

from farm.contract import reports
from farm.contract.reports import CheckReport
from farm.fleet.states import TrialState
from farm.registry.states import MakingState
from farm.runs.models import Block, Report
from farm.runs.states import AttemptState

_REPORT: TypeAdapter[reports.Report] = TypeAdapter(reports.Report)
# the filter for arms that cannot be measured, so that no node is asked for them
UNMAKEABLE = (
    Q(cell__variant__state=MakingState.FAILED)
    | Q(cell__preparation__state=MakingState.FAILED)
    | Q(cell__trial__state__in=(TrialState.FAILED, TrialState.DECLINED))
)
# attempts whose reports count
COUNTED = (AttemptState.DONE, AttemptState.REPORTED, AttemptState.LEASED)


def counted_reports(block: Block) -> list[reports.Report]:
    """Read the reports of the block's done, reported and leased attempts, in the order in which they came.

    Reports of failed, lost and cancelled attempts do not count: their rounds are measured again.
    """
    rows = Report.objects.filter(attempt__block=block, attempt__state__in=COUNTED).order_by("attempt__number", "pk")
    return [_REPORT.validate_json(body) for body in rows.values_list("body", flat=True)]


def refused_reports(block: Block) -> list[CheckReport]:
    """Make a failed check for each arm whose variant or inputs could not be made, or whose trial failed.

    Arms that were not given that reason yet are left out. The order is that of the arms' numbers.
    """
    refused = block.arms.filter(UNMAKEABLE).exclude(reason_code="").order_by("number")
    return [CheckReport(arm=arm.number, reason=arm.reason) for arm in refused]


def reports_to_judge(block: Block) -> list[reports.Report]:
    """Read the reports from which verdicts are made: those of `refused_reports`, then those of `counted_reports`."""
    return [*refused_reports(block), *counted_reports(block)]
