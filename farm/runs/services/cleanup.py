"""Removing the files of attempts that are over, which no page shows: what a node leaves goes with its attempt."""

from django.db import transaction

from farm.registry.services import remove_unused
from farm.runs.models import Attempt, CompiledModel, Part, Trace
from farm.runs.states import AttemptState

# attempts cleared at once
CLEARED_AT_ONCE = 100


def clear_unnamed() -> int:
    """Removes the parts of attempts that are over, but for those that an answer names; gives how many rows went."""
    rows = Part.objects.exclude(attempt__state=AttemptState.LEASED).values_list("pk", "blob_id")
    over = list(rows[:CLEARED_AT_ONCE])
    if over:
        with transaction.atomic():
            Part.objects.filter(pk__in=[pk for pk, _ in over]).delete()
            remove_unused([blob for _, blob in over])
    return len(over)


def clear_uncounted(attempt: Attempt) -> None:
    """Removes the traces and compiled models of an attempt that came to nothing: no page shows them.

    Call inside a transaction.
    """
    for rows in (Trace.objects.filter(attempt=attempt), CompiledModel.objects.filter(attempt=attempt)):
        if blobs := list(rows.values_list("blob_id", flat=True)):
            rows.delete()
            remove_unused(blobs)
