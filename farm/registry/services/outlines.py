"""Outlines: a version's graph for a picture of it, made by a `prepare` worker and only handed out by the web."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from django.db import transaction
from django.utils import timezone

from farm.base.refusals import Conflict, Missing
from farm.registry import storage
from farm.registry.models import Outline, Version
from farm.registry.services.products import ensure_outline
from farm.registry.states import MakingState, VersionState

# whoever looks at a failed outline again so much later has it tried again, where the model was not the reason
TRIED_AGAIN_AFTER: Final = timedelta(minutes=1)


def outline_of(version: Version) -> Path | None:
    """The file with the version's graph and without its large tensors; None while that is being made.

    It is ordered here where nobody has: of versions that were uploaded before outlines were made at upload. Raises
    Conflict before inspection has accepted the version and for a graph that cannot be drawn, Missing when the file is
    not stored any more.
    """
    if version.state != VersionState.READY:
        raise Conflict(f"{version} is {version.state}; its graph is drawn once it is inspected.", code="not_inspected")
    outline = Outline.objects.select_related("artifact", "blob").filter(artifact=version.artifact).first()
    if outline is None or _is_stale(outline):
        with transaction.atomic():
            outline = ensure_outline(version.artifact)
    if outline.state == MakingState.FAILED:
        raise Conflict(f"The graph of {version} cannot be drawn: {outline.reason_text}", code="no_graph")
    return _file_of(outline, version)


def _is_stale(outline: Outline) -> bool:
    ended = outline.finished_at
    return outline.state == MakingState.FAILED and ended is not None and ended < timezone.now() - TRIED_AGAIN_AFTER


def _file_of(outline: Outline, version: Version) -> Path | None:
    if outline.blob is None:
        return None
    path = storage.fetched(team_id=outline.artifact.team_id, sha256=outline.blob.sha256)
    if not path.is_file():
        raise Missing(f"The outline of {version} is not stored any more.")
    return path
