"""Carrying out a pending row: claimed once, kept alive while it is worked on, and ended as ready or failed in words."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from django.db import DatabaseError, connections
from django.utils import timezone

from farm.base.refusals import Refusal
from farm.contract.reasons import ReasonCode, ReasonedError
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
from farm.registry.services.products import claim, fail, finish

SIGN_OF_LIFE_S: Final = 10.0
Worked = TypeVar("Worked", Version, Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime)
log = logging.getLogger(__name__)
BROKEN = "Internal error while preparing this; see the farm's log, then try again."
Row = TypeVar("Row", Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime)


@contextlib.contextmanager
def at_work(row: Worked) -> Iterator[None]:
    """Moves the row's `asked_at` on every ten seconds while the block runs, as long as this try still owns the row."""
    over = threading.Event()
    thread = threading.Thread(target=_keep, args=(row, over), name=f"at-work-{row.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep(row: Worked, over: threading.Event) -> None:
    while not over.wait(SIGN_OF_LIFE_S):
        try:
            type(row).objects.filter(pk=row.pk, state=row.state, tries=row.tries).update(asked_at=timezone.now())
        except DatabaseError as problem:
            log.warning("could not note that %s is being worked on: %s", row, problem)
        finally:
            connections.close_all()


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
