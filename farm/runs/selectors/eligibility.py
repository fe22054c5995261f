"""Which node may have which block now."""

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from django.db.models import Exists

from farm.contract.cells import CellSpec
from farm.fleet.models import Node
from farm.fleet.selectors import offer_of
from farm.rules.planning.resolution import takes
from farm.runs.models import Block
from farm.runs.states import BlockState


def why_not(node: Node, block: Block, attempt: int) -> str:
    """Why the node may not claim the block now, in one sentence; empty when it may."""
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
    serving = _serving(node, block)
    if serving is None:
        return f"{node.name} does not measure for team “{block.run.team.name}”{_bare(node)}."
    if not can_take(node, (arm.spec for arm in block.plan.arms)):
        return f"{node.name} lacks hardware or a provider that block {block.pk} asks for, or cores for its threads."
    if serving.is_busy:
        return f"{node.name} is measuring another block; it takes one at a time."
    return ""


def serves(node: Node, block: Block) -> bool:
    """Whether the block's model may be given to the node: both teams agree, and its owner's word or its walls allow."""
    return _serving(node, block) is not None


class _Serving(Protocol):
    """A node that may have a block's model, and whether it measures another one now."""

    is_busy: bool


def _serving(node: Node, block: Block) -> "_Serving | None":
    measured = Block.objects.filter(device=node.device, state=BlockState.LEASED)
    serving = Node.objects.serving(block.run.team_id, uploader=block.run.version.uploaded_by_id).filter(pk=node.pk)
    return cast("_Serving | None", serving.annotate(is_busy=Exists(measured)).only("pk").first())


def _bare(node: Node) -> str:
    return ", having no sandbox, what its owner did not upload" if node.sandbox == "none" else ""


def can_take(node: Node, specs: Iterable[CellSpec]) -> bool:
    """Whether the node has what all these cells ask for."""
    offer = offer_of(node)
    return all(takes(offer, spec) for spec in specs)


def first_taker(block_id: str, attempt: int, node_ids: Sequence[int]) -> tuple[int | None, bool]:
    """The first of these nodes that may claim the block now, and whether the block is to be had at all."""
    block = Block.objects.select_related("run__team", "run__version__uploaded_by").filter(pk=block_id).first()
    if block is None or block.state != BlockState.QUEUED or block.attempt != attempt:
        return None, False
    nodes = Node.objects.select_related("team", "owner").defer("log_tail").in_bulk(list(node_ids))
    able = (pk for pk in node_ids if pk in nodes and not why_not(nodes[pk], block, attempt))
    return next(able, None), True
