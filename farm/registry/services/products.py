"""Orders what is made once for each artifact: variants, inputs and reference outputs, outlines, reports, runtimes.

A row is an order. A worker claims it, renews the claim every few seconds while it works, and ends it as ready or
failed. The functions `ensure_…` return the row as it is: it may be pending, in the making, ready or failed.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from django.db import DatabaseError, connections, transaction
from django.db.models import F
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write
from farm.base.refusals import Conflict, Missing, NotAllowed, Refusal
from farm.contract.base import digest_json
from farm.contract.cells import Recipe, Workload
from farm.contract.reasons import ReasonCode, ReasonedError
from farm.registry import storage
from farm.registry.models import (
    Artifact,
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
    MAKE_VARIANT,
    OUTLINE,
    PREPARE,
    REPORT_VARIANT,
    WEB_RUNTIME,
    send_hint_on_commit,
)
from farm.registry.states import MakingState, VersionState
from farm.rules.cells import recipes

Row = TypeVar("Row", Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime)
# failures that are not the model's fault, after which a new request makes the product again
TRANSIENT_REASONS: Final = (ReasonCode.INTERNAL, ReasonCode.ARTIFACT_UNAVAILABLE)
# after this time, a request fetches a runtime again that could not be fetched
FETCHED_AGAIN_AFTER: Final = timedelta(minutes=1)
# fields of a workload on which its inputs do not depend
NOT_IN_INPUTS: Final = {"concurrency", "scenario"}
# after this time, a request makes an outline again that failed for a reason in TRANSIENT_REASONS
TRIED_AGAIN_AFTER: Final = timedelta(minutes=1)
CLAIM_RENEWAL_S: Final = 10.0
Claimed = TypeVar(
    "Claimed", Version, Variant, Preparation, EvaluationData, VariantReport, Outline, PlanOrder, WebRuntime
)
log = logging.getLogger(__name__)
BROKEN = "Internal error while preparing this; see the farm's log, then try again."


def ensure_variant(*, artifact: Artifact, recipe: Recipe) -> Variant:
    """Return the variant of that recipe. Order it where it is new, or failed for a reason in TRANSIENT_REASONS.

    The variant of the identity recipe is ready at once.
    """
    document = recipe.model_dump(mode="json")
    ready_columns = {"state": MakingState.READY, "derived": artifact, "finished_at": timezone.now()}
    variant, is_new = Variant.objects.get_or_create(
        artifact=artifact,
        recipe_sha256=digest_json(document),
        defaults={"recipe_json": document} | (ready_columns if recipe.is_identity else {}),
    )
    _hint_if_pending(variant, MAKE_VARIANT, is_new=is_new)
    return variant


def ensure_preparation(*, artifact: Artifact, workload: Workload) -> Preparation:
    """Return the preparation for that workload. Order it where it is new, or failed for a reason in TRANSIENT_REASONS.

    It holds the inputs and the reference outputs. Workloads that differ only in concurrency or scenario share them.
    """
    document = workload.model_dump(mode="json", exclude=NOT_IN_INPUTS)
    preparation, is_new = Preparation.objects.get_or_create(
        artifact=artifact, workload_sha256=digest_json(document), defaults={"workload_json": document}
    )
    _hint_if_pending(preparation, PREPARE, is_new=is_new)
    return preparation


def ensure_report(variant: Variant) -> VariantReport:
    """Return the report on that variant. Order it where it is new, or failed for a reason in TRANSIENT_REASONS."""
    report, is_new = VariantReport.objects.get_or_create(variant=variant)
    _hint_if_pending(report, REPORT_VARIANT, is_new=is_new)
    return report


def ensure_outline(artifact: Artifact) -> Outline:
    """Return the artifact's outline. Order it where it is new, or failed for a reason in TRANSIENT_REASONS."""
    outline, is_new = Outline.objects.get_or_create(artifact=artifact)
    _hint_if_pending(outline, OUTLINE, is_new=is_new)
    return outline


def ensure_web_runtime(version: str, *, team: Team | None) -> WebRuntime:
    """Return that release for browsers; order it where it is new, or where fetching it failed over a minute ago.

    After a failure for a reason in TRANSIENT_REASONS it is ordered again at once. `team`, the team whose run asked for
    it, is stored only with a new one.
    """
    row, is_new = WebRuntime.objects.get_or_create(version=version, defaults={"team": team})
    overdue = {"state": MakingState.FAILED, "finished_at__lt": timezone.now() - FETCHED_AGAIN_AFTER}
    if not is_new and WebRuntime.objects.filter(pk=row.pk, **overdue).update(reason_code=ReasonCode.INTERNAL):
        row.reason_code = ReasonCode.INTERNAL
    _hint_if_pending(row, WEB_RUNTIME, is_new=is_new)
    return row


def claim(row: Row) -> bool:
    """Claim a pending row for this worker by one conditional UPDATE, count the try, and reload the row.

    Return False, with nothing changed, where the row is not pending.
    """
    rows = type(row).objects.filter(pk=row.pk, state=MakingState.PENDING)
    if not rows.update(state=MakingState.MAKING, tries=F("tries") + 1, asked_at=timezone.now()):
        return False
    row.refresh_from_db()
    return True


def finish(row: Row) -> bool:
    """Store all columns of a claimed row and make it ready.

    Return False, with nothing stored, where the sweep has given the row to a later try.
    """
    columns = [f for f in row._meta.concrete_fields if not f.primary_key and f.attname not in ("tries", "created_at")]
    values = {f.attname: getattr(row, f.attname) for f in columns}
    values |= {"state": MakingState.READY, "finished_at": timezone.now()}
    return bool(_select_claimed(row).update(**values))


def fail(row: Row, *, code: ReasonCode, text: str) -> bool:
    """Make a claimed row failed, with its reason and without its other columns.

    Return False, with nothing stored, where the sweep has given the row to a later try.
    """
    columns = {"state": MakingState.FAILED, "finished_at": timezone.now()}
    return bool(_select_claimed(row).update(reason_code=code, reason_text=text[:2000], **columns))


def _select_claimed(row: Row):  # type: ignore[no-untyped-def]  # the manager's type follows the row's
    return type(row).objects.filter(pk=row.pk, state=MakingState.MAKING, tries=row.tries)


def _hint_if_pending(row: Row, task: str, *, is_new: bool) -> None:
    if not is_new and not _retry_failed(row):
        return
    if row.state == MakingState.PENDING:
        send_hint_on_commit(task, row.pk)


def _retry_failed(row: Row) -> bool:
    """Make a row that failed for a reason in TRANSIENT_REASONS pending again; return whether it was one."""
    failed = type(row).objects.filter(pk=row.pk, state=MakingState.FAILED, reason_code__in=TRANSIENT_REASONS)
    if not failed.update(state=MakingState.PENDING, tries=0, reason_code="", reason_text="", asked_at=timezone.now()):
        return False
    row.refresh_from_db()
    return True


def find_or_order_outline(version: Version) -> Path | None:
    """Return the file with the version's graph without its large tensors; None while the file is being made.

    It is ordered here if it was never ordered, or if making it failed over a minute ago for a reason in
    TRANSIENT_REASONS. Raises Conflict for a version that inspection has not accepted and for a graph that cannot be
    drawn, Missing where the file is not stored any more, and Away where the bucket does not answer.
    """
    if version.state != VersionState.READY:
        raise Conflict(f"{version} is {version.state}; its graph is drawn once it is inspected.", code="not_inspected")
    outline = Outline.objects.select_related("artifact", "blob").filter(artifact=version.artifact).first()
    ended = outline.finished_at if outline is not None and outline.state == MakingState.FAILED else None
    if outline is None or (ended is not None and ended < timezone.now() - TRIED_AGAIN_AFTER):
        with transaction.atomic():
            outline = ensure_outline(version.artifact)
    if outline.state == MakingState.FAILED:
        raise Conflict(f"The graph of {version} cannot be drawn: {outline.reason_text}", code="no_graph")
    return _fetch_outline(outline, version)


def _fetch_outline(outline: Outline, version: Version) -> Path | None:
    if outline.blob is None:
        return None
    path = storage.fetch_blob(team_id=outline.artifact.team_id, sha256=outline.blob.sha256)
    if not path.is_file():
        raise Missing(f"The outline of {version} is not stored any more.")
    return path


def order_variant_report(*, variant: Variant, by: User) -> VariantReport:
    """Order the report on an 8-bit variant, with errors by layer and scales by weight, and return its row.

    A worker makes it once. A report that was ordered before is ordered again only where it failed for a reason in
    TRANSIENT_REASONS. Raises NotAllowed for a person who may not write in the team, and Conflict for a variant that is
    not ready or not 8-bit.
    """
    team = variant.artifact.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view the models of team “{team.name}” but not analyse them.")
    if variant.state != MakingState.READY or variant.recipe.precision not in recipes.EIGHT_BITS:
        raise Conflict("Only an 8-bit variant that is ready can be analysed.", code="no_report")
    with transaction.atomic():
        return ensure_report(variant)


@contextlib.contextmanager
def keep_claim_alive(row: Claimed) -> Iterator[None]:
    """Within this context, set the row's `asked_at` every ten seconds, so that the sweep does not give it away."""
    over = threading.Event()
    thread = threading.Thread(target=_renew_claim, args=(row, over), name=f"at-work-{row.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _renew_claim(row: Claimed, over: threading.Event) -> None:
    while not over.wait(CLAIM_RENEWAL_S):
        try:
            type(row).objects.filter(pk=row.pk, state=row.state, tries=row.tries).update(asked_at=timezone.now())
        except DatabaseError as problem:
            log.warning("could not note that %s is being worked on: %s", row, problem)
        finally:
            connections.close_all()


def make_claimed_row(row: Row | None, make: Callable[[Row], None]) -> None:
    """Claim the row, call `make`, and store the row as ready or failed. Nothing happens unless the row is pending.

    Errors of `make` are stored as the reason of the failure and not raised.
    """
    if row is None or not claim(row):
        return
    try:
        with keep_claim_alive(row):
            make(row)
    except ReasonedError as problem:
        fail(row, code=problem.reason.code, text=problem.reason.text)
    except Refusal as refusal:
        fail(row, code=ReasonCode.INTERNAL, text=str(refusal))
    except Exception:
        # a bug of the farm: end the row, so that nobody waits for ever, and log the trace
        log.exception("making %s broke", row)
        fail(row, code=ReasonCode.INTERNAL, text=BROKEN)
    else:
        finish(row)
