"""Inspection of an uploaded version in the sandboxed child: pending → inspecting → ready | rejected."""

import logging

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from farm.accounts.services import record
from farm.base.refusals import Refusal
from farm.registry.models import Version
from farm.registry.services.given import Bench, accept_calibration, accept_given, accept_prompts
from farm.registry.services.messages import INSPECT, hint
from farm.registry.services.pending_rows import at_work
from farm.registry.services.products import ensure_outline
from farm.registry.states import VersionState
from farm.registry.workbench import bench, lay_out
from farm.rules.cells import fills
from farm.workshop import orders
from farm.workshop.inspection import Feed

log = logging.getLogger(__name__)
BROKEN = "The farm could not inspect this model because of an internal error; upload it again later."


def order_inspection(version: Version) -> Version:
    """Inspect a rejected version again, or hurry a pending one; a ready one stays as it is."""
    with transaction.atomic():
        again = Version.objects.filter(pk=version.pk, state__in=(VersionState.PENDING, VersionState.REJECTED))
        if again.update(state=VersionState.PENDING, problem="", tries=0, asked_at=timezone.now()):
            hint(INSPECT, version.pk)
    version.refresh_from_db()
    return version


def inspect_version(version_id: int) -> None:
    """Look into a pending version and write what was found; a second message for the same row does nothing."""
    version = _claimed(version_id)
    if version is None:
        return
    try:
        with at_work(version):
            inspection, problem = _inspected(version)
    except Refusal as refusal:
        inspection, problem = None, str(refusal)
    except Exception:
        # whatever broke is ours, not the model's: the row must not wait for ever, and the log has the trace
        log.exception("inspection of version %s broke", version_id)
        inspection, problem = None, BROKEN
    _write(version, inspection=inspection, problem=problem)


def _claimed(version_id: int) -> Version | None:
    rows = Version.objects.filter(pk=version_id, state=VersionState.PENDING)
    if not rows.update(state=VersionState.INSPECTING, tries=F("tries") + 1, asked_at=timezone.now()):
        return None
    return Version.objects.select_related("artifact__team", "model__team").get(pk=version_id)


def _inspected(version: Version) -> tuple[dict[str, object] | None, str]:
    """What was found and no problem, or nothing and the problem in one sentence."""
    artifact = version.artifact
    with bench() as folder:
        out = folder / "out"
        out.mkdir()
        bundle = lay_out(artifact, folder / "bundle")
        found = orders.inspect(bundle, artifact.main, timeout_s=settings.INSPECTION_TIMEOUT_S, is_one_of_many=True)
        if found.problem is not None:
            return None, found.problem.text
        try:
            sizes = accept_given(Bench(artifact=artifact, bundle=bundle, out=out))
            accept_prompts(Bench(artifact=artifact, bundle=bundle, out=out))
        except orders.WorkshopError as problem:
            return None, problem.reason.text
        accept_calibration(Bench(artifact=artifact, bundle=bundle, out=out))
        reach = orders.reach_of(bundle, artifact.main, is_one_of_many=True)
        if sizes is None:
            feed = orders.choose_feed(bundle, artifact.main, out_dir=out)
        else:
            feed = Feed(sizes=dict(sizes), inputs={port.name: fills.GIVEN for port in found.inputs})
        found = found.model_copy(update={"opset_reach": reach, "feed": feed})
    return found.model_dump(mode="json"), ""


def _write(version: Version, *, inspection: dict[str, object] | None, problem: str) -> None:
    state = VersionState.REJECTED if problem else VersionState.READY
    own = Version.objects.filter(pk=version.pk, state=VersionState.INSPECTING, tries=version.tries)
    with transaction.atomic():
        if own.update(state=state, inspection=inspection, problem=problem[:4000]):
            facts = {"problem": problem[:500]} if problem else {}
            if state == VersionState.READY:
                ensure_outline(version.artifact)
            record(verb=f"version {state}", subject=str(version), team=version.model.team, facts=facts)
