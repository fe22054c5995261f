"""Signs of life of a worker that is at a row, so that the sweep can tell a long order from a lost worker."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Final, TypeVar

from django.db import DatabaseError, connections
from django.utils import timezone

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

log = logging.getLogger(__name__)
SIGN_OF_LIFE_S: Final = 10.0
Row = TypeVar("Row", Version, Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime)


@contextlib.contextmanager
def at_work(row: Row) -> Iterator[None]:
    """Moves the row's `asked_at` on every ten seconds while the block runs, as long as this try still owns the row."""
    over = threading.Event()
    thread = threading.Thread(target=_keep, args=(row, over), name=f"at-work-{row.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep(row: Row, over: threading.Event) -> None:
    while not over.wait(SIGN_OF_LIFE_S):
        try:
            type(row).objects.filter(pk=row.pk, state=row.state, tries=row.tries).update(asked_at=timezone.now())
        except DatabaseError as problem:
            log.warning("could not note that %s is being worked on: %s", row, problem)
        finally:
            connections.close_all()
