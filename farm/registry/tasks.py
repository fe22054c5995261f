"""Celery tasks of the `prepare` workers. A message holds only the id of a row; a second message for it does nothing."""

import logging

from celery import shared_task

from farm.base.ticks import tick
from farm.registry import services
from farm.registry.services import messages

log = logging.getLogger(__name__)


@shared_task(name=messages.INSPECT)  # type: ignore[untyped-decorator]
def inspect_version(version_id: int) -> None:
    services.inspect_version(version_id)


@shared_task(name=messages.MAKE_VARIANT)  # type: ignore[untyped-decorator]
def make_variant(variant_id: int) -> None:
    services.make_variant(variant_id)


@shared_task(name=messages.PREPARE)  # type: ignore[untyped-decorator]
def prepare_inputs(preparation_id: int) -> None:
    services.prepare_inputs(preparation_id)


@shared_task(name=messages.CHECK_EVALUATION)  # type: ignore[untyped-decorator]
def check_evaluation(evaluation_id: int) -> None:
    services.check_evaluation(evaluation_id)


@shared_task(name=messages.REPORT_VARIANT)  # type: ignore[untyped-decorator]
def report_variant(report_id: int) -> None:
    services.report_variant(report_id)


@shared_task(name=messages.OUTLINE)  # type: ignore[untyped-decorator]
def make_outline(outline_id: int) -> None:
    services.make_outline(outline_id)


@shared_task(name=messages.WEB_RUNTIME)  # type: ignore[untyped-decorator]
def fetch_web_runtime(row_id: int) -> None:
    services.fetch_web_runtime(row_id)


@shared_task(name="registry.sweep")  # type: ignore[untyped-decorator]
@tick("registry.sweep")
def sweep() -> None:
    services.recover_rows()
    services.clear_expired()


@shared_task(name="registry.clear_orphans")  # type: ignore[untyped-decorator]
@tick("registry.clear_orphans")
def clear_orphans() -> None:
    if removed := services.clear_orphans():
        log.info("removed %d files of the store that no row names", removed)
