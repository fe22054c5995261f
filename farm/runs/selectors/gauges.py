"""Counts over the whole farm, for those who keep it running. Nobody's names are in them."""

from typing import Final, NamedTuple

from django.db import models
from django.db.models import Count, Min, Sum
from django.utils import timezone

from farm.fleet.models import Node
from farm.registry.models import Blob, PartialUpload, Preparation, Variant, Version
from farm.runs.models import Attempt, Block, Run
from farm.runs.states import BlockState


class Family(NamedTuple):
    """Counts of one kind of row by the values of some columns."""

    name: str
    words: str
    labels: tuple[str, ...]
    values: dict[tuple[str, ...], float]


COUNTED: Final[tuple[tuple[str, str, type[models.Model], tuple[str, ...]], ...]] = (
    ("nodes", "Nodes, by whether they are there and may work.", Node, ("state", "health")),
    ("runs", "Runs.", Run, ("state", "outcome")),
    ("blocks", "Blocks.", Block, ("state",)),
    ("attempts", "Attempts at blocks; lost ones had a node that fell silent.", Attempt, ("state",)),
    ("versions", "Uploaded versions; pending and inspecting ones wait for a prepare worker.", Version, ("state",)),
    ("variants", "Variants made or to be made.", Variant, ("state",)),
    ("preparations", "Inputs and references made or to be made.", Preparation, ("state",)),
)


def counts() -> list[Family]:
    """Every counted family."""
    found = [Family(name, words, labels, _by(model, labels)) for name, words, model, labels in COUNTED]
    waiting = PartialUpload.objects.filter(version=None).count()
    return [*found, Family("partial_uploads", "Uploads in pieces that are not complete.", (), {(): waiting})]


def oldest_queued_s() -> float:
    """Seconds that the block which has waited longest for a node has been queued; 0 when none is."""
    since = Block.objects.filter(state=BlockState.QUEUED).aggregate(since=Min("queued_at"))["since"]
    return max(0.0, (timezone.now() - since).total_seconds()) if since else 0.0


def stored_bytes() -> int:
    """Bytes of all teams' files."""
    return int(Blob.objects.aggregate(total=Sum("bytes"))["total"] or 0)


def _by(model: type[models.Model], labels: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    found = model._default_manager.order_by().values_list(*labels).annotate(count=Count("pk"))
    return {tuple(str(value) for value in key): count for *key, count in found}
