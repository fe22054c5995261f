"""Nodes that teams lend to each other."""

from django.db.models import QuerySet

from farm.accounts.models import Team
from farm.accounts.selectors import Anyone
from farm.base.refusals import Missing
from farm.fleet.models import Lending, Node

RELATED = ("node__team", "node__owner", "team", "asked_by", "answered_by")


def lendings_visible_to(user: Anyone) -> QuerySet[Lending]:
    """Lendings of the user's nodes, and to the user's teams, newest first."""
    teams = Team.objects.visible_to(user).values("pk")
    nodes = Node.objects.visible_to(user).order_by().values("pk")
    rows = Lending.objects.filter(team__in=teams) | Lending.objects.filter(node__in=nodes)
    return rows.select_related(*RELATED).defer("node__facts_json", "node__log_tail").order_by("-pk")


def lendings_to(user: Anyone) -> QuerySet[Lending]:
    """Nodes of others that were offered to the user's teams."""
    teams = Team.objects.visible_to(user).values("pk")
    return lendings_visible_to(user).filter(team__in=teams)


def lending(user: Anyone, lending_id: int) -> Lending:
    """One of them. Raises Missing."""
    row = lendings_visible_to(user).filter(pk=lending_id).first()
    if row is None:
        raise Missing(
            f"There is no lending {lending_id} that you can access.", hint="`onnxfarm node lendings` lists them."
        )
    return row
