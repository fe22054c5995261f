"""Decides which node may claim a queued block now, and counts rows and bytes of the whole farm for its metrics.

The age of the oldest queued or reported block is in seconds since it became so, and 0 if there is none. `stored_bytes`
sums up all rows of blobs, those whose files were deleted with a branch included.
"""

from typing import Final, NamedTuple, Protocol, cast

from django.db import models
from django.db.models import Count, Exists, Min, OuterRef, Q, Sum
from django.utils import timezone

from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.fleet.selectors import make_node_offer
from farm.registry.models import Blob, PartialUpload, Preparation, Variant, Version
from farm.rules.planning.nodes import can_measure
from farm.runs.models import Attempt, Beside, Block, Run
from farm.runs.selectors.evidence import UNMAKEABLE
from farm.runs.selectors.minutes import explain_no_minutes
from farm.runs.states import BlockState


def explain_refused_claim(node: Node, block: Block, attempt: int) -> str:
    """Say why the node may not claim this attempt of the block now, in one sentence; empty if it may."""
    if block.state != BlockState.QUEUED or block.attempt != attempt:
        return f"Block {block.pk} is {block.state} at attempt {block.attempt}; attempt {attempt} is not available."
    if not node.may_take_blocks:
        return f"{node.name} may take no block now: it is {node.health}. {node.pause}".strip()
    if block.plan.minutes * 60 > node.settings.max_block_s:
        return (
            f"{node.name} takes blocks of at most {node.settings.max_block_s / 60:g} minutes; block {block.pk} is "
            f"planned for {block.plan.minutes:.1f}."
        )
    if block.only_node_id not in (None, node.pk) or (block.first_round and block.only_node_id is None):
        return f"Block {block.pk} continues on the node that started it."
    serving = _find_serving_node(node, block)
    if serving is None:
        exception = ", having no sandbox, what its owner did not upload" if node.sandbox == "none" else ""
        return f"{node.name} does not measure for team “{block.run.team.name}”{exception}."
    offer = make_node_offer(node)
    if not all(can_measure(offer, spec) for spec in _list_wanted_specs(block)):
        return f"{node.name} lacks hardware or a provider that block {block.pk} asks for, or cores for its threads."
    busy = f"{node.name} is measuring another block, or another node of its machine is; it takes one at a time."
    return busy if serving.is_busy else explain_no_minutes(block.run.team)


def _list_wanted_specs(block: Block) -> list[CellSpec]:
    """List the specs of the block's cells, without those that cannot be made or whose trial failed."""
    arms = block.plan.arms
    is_tried = any(arm.trial is not None for arm in arms)
    unmakeable = set(block.arms.filter(UNMAKEABLE).values_list("number", flat=True)) if is_tried else set()
    return [arm.spec for arm in arms if arm.arm not in unmakeable]


def may_have_model(node: Node, block: Block) -> bool:
    """Say whether the node may get the block's model.

    The node must measure for the model's team, and it needs a sandbox unless its owner uploaded the model.
    """
    return _find_serving_node(node, block) is not None


class _ServingNode(Protocol):
    """A node that may have a block's model, and whether it measures another block now."""

    is_busy: bool


def _find_serving_node(node: Node, block: Block) -> "_ServingNode | None":
    measured = Block.objects.filter(Q(device=node.device) | Q(node=node.pk), state=BlockState.LEASED)
    if node.team_id == block.run.team_id and node.sandbox != "none":
        # a sandboxed node takes any model of its own team, so the uploader is not looked up in this common case
        serving = Node.objects.with_writing_owner()
    else:
        # a node without a sandbox takes only blocks whose models were all uploaded by its owner
        models_of_others = Beside.objects.filter(run=block.run_id).exclude(version__uploaded_by=OuterRef("owner"))
        serving = Node.objects.serving(block.run.team_id, uploader=block.run.version.uploaded_by_id)
        serving = serving.exclude(Q(sandbox="none") & Exists(models_of_others))
    serving = serving.filter(pk=node.pk)
    return cast("_ServingNode | None", serving.annotate(is_busy=Exists(measured)).only("pk").first())


class RowCounts(NamedTuple):
    """Counts of a kind of row, for the metrics of the farm.

    `labels` names the columns that are told apart; each key of `values` holds one value for each of them.
    """

    name: str
    words: str
    labels: tuple[str, ...]
    values: dict[tuple[str, ...], float]


COUNTED_ROWS: Final[tuple[tuple[str, str, type[models.Model], tuple[str, ...]], ...]] = (
    ("nodes", "Nodes, by whether they are there and may work.", Node, ("state", "health")),
    ("runs", "Runs.", Run, ("state", "outcome")),
    ("blocks", "Blocks.", Block, ("state",)),
    ("attempts", "Attempts at blocks; lost ones had a node that fell silent.", Attempt, ("state",)),
    ("versions", "Uploaded versions; pending and inspecting ones wait for a prepare worker.", Version, ("state",)),
    ("variants", "Variants made or to be made.", Variant, ("state",)),
    ("preparations", "Inputs and references made or to be made.", Preparation, ("state",)),
)


def count_rows() -> list[RowCounts]:
    """Count every kind of row in COUNTED_ROWS, in its order, and last the unfinished uploads in pieces."""
    counts = []
    for name, words, model, labels in COUNTED_ROWS:
        rows = model._default_manager.order_by().values_list(*labels).annotate(count=Count("pk"))
        counts.append(RowCounts(name, words, labels, {tuple(map(str, key)): count for *key, count in rows}))
    waiting = PartialUpload.objects.filter(version=None).count()
    return [*counts, RowCounts("partial_uploads", "Uploads in pieces that are not complete.", (), {(): waiting})]


def oldest_queued_age_s() -> float:
    return _oldest_s(BlockState.QUEUED, "queued_at")


def oldest_reported_age_s() -> float:
    return _oldest_s(BlockState.REPORTED, "ended_at")


def _oldest_s(state: BlockState, field: str) -> float:
    since = Block.objects.filter(state=state).aggregate(since=Min(field))["since"]
    return max(0.0, (timezone.now() - since).total_seconds()) if since else 0.0


def stored_bytes() -> int:
    return int(Blob.objects.aggregate(total=Sum("bytes"))["total"] or 0)
