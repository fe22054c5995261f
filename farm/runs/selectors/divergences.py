"""Reads the questions where cells' outputs begin to differ, and their answers, in the order of their ids.

`divergences_of` lists the questions about a cell, but not those that only compare another cell with it.
"""

from django.db.models import QuerySet

from farm.accounts.selectors import Anyone
from farm.base.refusals import require_row
from farm.contract.divergence import DivergenceOrder
from farm.runs.models import Arm, Block, Divergence, Run, match_arms
from farm.runs.states import DivergenceState

RELATED = ("arm__block__run", "arm__cell", "against__cell", "part")


def open_questions(block: Block) -> tuple[DivergenceOrder, ...]:
    """List the questions that wait for the node of a block; empty if none does, or if its order begins with round 0."""
    if not block.first_round:
        # a block is only asked about once it has rounds
        return ()
    rows = Divergence.objects.filter(arm__block=block, state=DivergenceState.ASKED).select_related("arm", "against")
    return tuple(
        DivergenceOrder(arm=row.arm.number, against=row.against.number if row.against else None) for row in rows
    )


def divergences_of(run: Run, name: str) -> QuerySet[Divergence]:
    return Divergence.objects.filter(match_arms(run, name, of="arm__")).select_related(*RELATED)


def divergence(user: Anyone, divergence_id: int) -> Divergence:
    """Return a question by its id. Raises Missing if there is none that the user may see."""
    visible = Divergence.objects.filter(arm__block__run__in=Run.objects.visible_to(user), pk=divergence_id)
    return require_row(visible.select_related(*RELATED), f"There is no divergence {divergence_id} that you can access.")


def measured_arm(run: Run, name: str) -> Arm:
    """Find the arm of a cell, or of its A/A twin, by its id in the run. Raises Missing if it was never in a block.

    The arm may be open, or have ended without a result.
    """
    return require_row(
        Arm.objects.filter(match_arms(run, name)).select_related("block__node", "cell"),
        f"Run {run.pk} has no measured cell {name!r}.",
        hint="Its cells are listed by its results.",
    )
