"""Owners who left: a node works for a team as long as its owner may run there."""

from farm.base.refusals import Conflict
from farm.fleet.models import Node


def why_unvouched(node: Node) -> str:
    """In one sentence, for a node that nobody vouches for."""
    if node.owner is None:
        return f"The owner of {node.name} was deleted. Retire the node and let its machine join again."
    return (
        f"Its owner {node.owner.username} left team {node.team.name}, may only look there, or was deactivated: "
        f"{node.name} gets none of the team's models."
    )


def must_be_vouched(node: Node) -> None:
    """Raises Conflict for a node whose owner may not run in its team (any more)."""
    if not Node.objects.vouched().filter(pk=node.pk).exists():
        raise Conflict(why_unvouched(node), code="owner_left", hint="Make the owner a member of the team first.")
