"""How arms and cells end: at once when a check fails, so that a run page shows it while the block goes on."""

from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import CheckReport, Report, RoundReport
from farm.runs.models import Arm, Block
from farm.runs.services.stops import end_arms, stop_block
from farm.runs.states import OPEN_BLOCKS, EventKind


def end_failed_arms(block: Block, report: Report) -> None:
    """Ends the arms that this report gives a reason for; under fail-fast, also every block that is not begun."""
    failed = False
    for number, reason in reasons_in(report):
        arm = block.arms.filter(number=number, status="").select_related("cell").first()
        if arm is not None:
            end_arms(Arm.objects.filter(pk=arm.pk), reason)
            text = f"{arm.name} ended as {reason.status}: {reason.text}"
            block.log(EventKind.CELL_ENDED, text, cell=arm.cell.name, code=reason.code)
            failed = True
    if failed and block.run.fail_fast:
        _stop_others(block)


def reasons_in(report: Report) -> list[tuple[int, Reason]]:
    """The arms that the report says have failed, and why."""
    match report:
        case CheckReport(reason=Reason() as reason):
            return [(report.arm, reason)]
        case RoundReport():
            return [(place.arm, place.reason) for place in report.samples if place.reason is not None]
        case _:
            return []


def _stop_others(block: Block) -> None:
    reason = Reason(code=ReasonCode.FAIL_FAST, text="Another cell of this run failed, and the matrix says `fail-fast`.")
    for other in block.run.blocks.exclude(pk=block.pk).filter(state__in=OPEN_BLOCKS):
        other.run = block.run
        stop_block(other, reason)
