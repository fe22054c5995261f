"""Carrying out a pending row: claimed once, kept alive while it is worked on, and ended as ready or failed in words."""

import logging
from collections.abc import Callable
from typing import TypeVar

from farm.base.refusals import Refusal
from farm.contract.reasons import ReasonCode, ReasonedError
from farm.registry.models import EvaluationData, Outline, PlanOrder, Preparation, Variant, VariantReport, WebRuntime
from farm.registry.services.heartbeats import at_work
from farm.registry.services.products import claim, fail, finish

log = logging.getLogger(__name__)
BROKEN = "Internal error while preparing this; see the farm's log, then try again."
Row = TypeVar("Row", Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime)


def carry_out(row: Row | None, make: Callable[[Row], None]) -> None:
    """Claim the row, make it, and write how it went; a message for no row, or a second one, does nothing."""
    if row is None or not claim(row):
        return
    try:
        with at_work(row):
            make(row)
    except ReasonedError as problem:
        fail(row, code=problem.reason.code, text=problem.reason.text)
    except Refusal as refusal:
        fail(row, code=ReasonCode.INTERNAL, text=str(refusal))
    except Exception:
        # whatever broke is ours: nobody should wait for ever, and the log has where
        log.exception("making %s broke", row)
        fail(row, code=ReasonCode.INTERNAL, text=BROKEN)
    else:
        finish(row)
