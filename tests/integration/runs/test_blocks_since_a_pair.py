"""How many blocks a node has measured since its last A/A pair, as planning is told."""

from farm.accounts.models import Team, User
from farm.fleet.models import Node
from farm.fleet.selectors import node_offers
from farm.rules.planning.null_pairs import NULL_PAIR_EVERY
from farm.runs.models import Block
from farm.runs.selectors.paces import add_null_history
from farm.runs.states import BlockState
from tests.integration.runs.making import first_block, make_node, make_run, make_version


def since(node: Node) -> int | None:
    [offer] = [
        one for one in add_null_history(node_offers(team=node.team, uploader=node.owner)) if one.id == str(node.pk)
    ]
    return offer.blocks_since_pair


def more_of(block: Block, count: int, *, node: Node, state: BlockState = BlockState.DONE) -> None:
    """Blocks beside that one, of a node."""
    begin = Block.objects.filter(run=block.run).count()
    Block.objects.bulk_create(
        Block(run=block.run, number=begin + n, node=node, state=state, plan_json=block.plan_json)
        for n in range(1, count + 1)
    )


def test_done_blocks_of_the_node_after_its_pair_count_up_to_the_next_pair(team: Team, member: User) -> None:
    node, other = make_node(team), make_node(team, name="bench-2")
    block = first_block(make_run(make_version(team), member))
    assert since(node) is None
    Node.objects.update(null_block=block.pk)
    assert since(node) == 0
    more_of(block, 3, node=node)
    more_of(block, 2, node=node, state=BlockState.FAILED)
    more_of(block, 4, node=other)
    assert (since(node), since(other)) == (3, 4)
    more_of(block, 30, node=node)
    assert (since(node), since(other)) == (NULL_PAIR_EVERY, 4)
