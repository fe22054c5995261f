"""Raw traces as people find them."""

from django.db.models import QuerySet

from farm.accounts.selectors import Anyone
from farm.base.refusals import Missing
from farm.runs.models import Arm, Run, Trace, named
from farm.runs.selectors.evidence import COUNTED


def traces_of(run: Run, name: str) -> QuerySet[Trace]:
    """Raw traces of one cell of the run, of the attempts that count, by trace round."""
    arm = Arm.objects.filter(named(run, name)).first()
    if arm is None:
        return Trace.objects.none()
    rows = Trace.objects.filter(attempt__block=arm.block_id, arm=arm.number, attempt__state__in=COUNTED)
    return rows.order_by("trace_round", "-pk")


def trace(user: Anyone, trace_id: int) -> Trace:
    """One trace. Raises Missing when there is none that the user may see."""
    visible = Trace.objects.filter(attempt__block__run__in=Run.objects.visible_to(user), pk=trace_id)
    found = visible.select_related("attempt__block__run").first()
    if found is None:
        raise Missing(f"There is no trace {trace_id} that you can access.")
    return found
