"""Sends the hints for waiting rows again, and gives the rows of lost workers to other workers.

The clocks of a farm's machines are expected to agree. If one jumps, some work is done twice at worst, because every
write is conditional on its try.
"""

import logging
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Model as Row
from django.db.models import QuerySet
from django.utils import timezone

from farm.contract.reasons import ReasonCode
from farm.registry.models import (
    EvaluationData,
    Outline,
    PlanOrder,
    Preparation,
    Variant,
    VariantReport,
    Version,
    WebRuntime,
)
from farm.registry.services.messages import (
    CHECK_EVALUATION,
    INSPECT,
    MAKE_PLAN,
    MAKE_VARIANT,
    OUTLINE,
    PREPARE,
    REPORT_VARIANT,
    WEB_RUNTIME,
    send_hint,
)
from farm.registry.services.products import CLAIM_RENEWAL_S
from farm.registry.states import MakingState, VersionState
from farm.registry.storage import clear_leftovers

log = logging.getLogger(__name__)
# how often a worker may be lost with a row before the row fails
MAX_TRIES: Final = 3
# the hint for a pending row is sent again after this time
SEND_AGAIN_AFTER: Final = timedelta(seconds=10)
# a worker that has not renewed its claim for this time is taken for dead
LOST_AFTER: Final = timedelta(seconds=6 * CLAIM_RENEWAL_S)
# hints of each kind of row in one pass
MAX_AT_ONCE: Final = 200
# the task that makes each kind of row
TASKS: Final[dict[Any, str]] = {
    Version: INSPECT,
    Variant: MAKE_VARIANT,
    Preparation: PREPARE,
    EvaluationData: CHECK_EVALUATION,
    VariantReport: REPORT_VARIANT,
    Outline: OUTLINE,
    WebRuntime: WEB_RUNTIME,
    PlanOrder: MAKE_PLAN,
}
LOST: Final = f"The worker stopped {MAX_TRIES} times while processing this model; check the farm's log, then try again."


def recover_rows() -> dict[str, int]:
    """Look once at all rows that workers make, and remove leftover files.

    Return how many rows were "sent again" (their hint), "given back" (made pending again) and "given up" (failed after
    MAX_TRIES), and how many files were "cleared". At most MAX_AT_ONCE hints are sent for each kind of row, those of the
    longest waiting first.
    """
    counts = {"sent again": 0, "given back": 0, "given up": 0}
    for rows in (model.objects.all() for model in TASKS):
        counts["given up"] += _fail_lost(rows)
        counts["given back"] += _select_lost(rows).update(state="pending", asked_at=timezone.now() - SEND_AGAIN_AFTER)
    counts["sent again"] = _send_pending()
    counts["cleared"] = clear_leftovers()
    if any(counts.values()):
        log.info("swept the registry: %s", counts)
    return counts


def _select_lost(rows: QuerySet[Row]) -> QuerySet[Row]:
    busy = (VersionState.INSPECTING, MakingState.MAKING)
    return rows.filter(state__in=busy, asked_at__lt=timezone.now() - LOST_AFTER)


def _fail_lost(rows: QuerySet[Row]) -> int:
    lost = _select_lost(rows).filter(tries__gte=MAX_TRIES)
    if rows.model is Version:
        return lost.update(state=VersionState.REJECTED, problem=LOST)
    columns = {"state": MakingState.FAILED, "finished_at": timezone.now()}
    return lost.update(**columns, reason_code=ReasonCode.INTERNAL, reason_text=LOST)


def _send_pending() -> int:
    count = 0
    for model, task in TASKS.items():
        waiting = model.objects.filter(state="pending", asked_at__lte=timezone.now() - SEND_AGAIN_AFTER)
        with transaction.atomic():
            overdue = list(waiting.order_by("asked_at").values_list("pk", flat=True)[:MAX_AT_ONCE])
            model.objects.filter(pk__in=overdue).update(asked_at=timezone.now())
        for pk in overdue:
            send_hint(task, pk)
        count += len(overdue)
    return count
