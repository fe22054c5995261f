"""Lends nodes to other teams: a node is offered, the team agrees or declines, and a lending lapses.

Each of these is written to the node's log and to the audit log of the receiving team.
"""

from django.db import transaction

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_manage, team_named, teams_visible_to
from farm.accounts.services import record
from farm.base.refusals import Conflict, NotAllowed
from farm.fleet.models import Lending, Node
from farm.fleet.services.health import check_manages
from farm.fleet.states import LendingState, NodeEventKind, NodeHealth


def share(*, node: Node, by: User, teams: list[str]) -> Node:
    """Offer a node to the teams of these names, and take it back from all other teams.

    The node measures for a team once an admin of that team agrees; where `by` is one, it is agreed at once. Teams that
    were offered it before are not asked again, whatever they answered, unless the lending lapsed and `by` belongs to
    the team. The node's own team is ignored. Raises NotAllowed for anybody who does not manage the node, Missing for a
    new team that `by` does not belong to, and Conflict for a retired node that is new to a team that `by` manages.
    """
    check_manages(node, by)
    lendings = {lending.team.name: lending for lending in node.lendings.select_related("team")}
    names = [name for name in dict.fromkeys(teams) if name != node.team.name]
    new = [team_named(name, user=by) for name in names if name not in lendings]
    again = [lendings[team.name] for team in teams_visible_to(by).filter(name__in=lendings.keys() & set(names))]
    with transaction.atomic():
        for lending in [lending for lending in again if lending.is_lapsed]:
            lending.delete()
            new.append(lending.team)
        for name in lendings.keys() - set(names):
            _log(lendings[name], f"{node.name} no longer measures for {name}.", by=by)
            record(verb="node taken back", subject=node.name, actor=by, team=lendings[name].team)
            lendings[name].delete()
        for team in new:
            _make_offer(node, team, by)
    return node


def agree(*, lending: Lending, by: User) -> Lending:
    """Agree that the node measures for the team, also where it was declined before.

    Raises NotAllowed for anybody but an admin of the receiving team. Raises Conflict where the node is retired, the
    person who offered it has left the receiving team, or the lending was agreed already.
    """
    if lending.node.health == NodeHealth.RETIRED:
        raise Conflict(f"{lending.node.name} was removed from the farm; it no longer measures for any team.")
    if not Lending.objects.offered_by_members().filter(pk=lending.pk).exists():
        raise Conflict(
            f"The member who offered {lending.node.name} is no longer in team “{lending.team.name}”.",
            code="offer_lapsed",
            hint="Its owner, or an admin of its team, has to offer it again.",
        )
    return _answer_offer(lending, LendingState.AGREED, by)


def decline(*, lending: Lending, by: User) -> Lending:
    """Decline a lending, agreed or not, so that the node gets no more of the team's models.

    Raises NotAllowed for anybody but an admin of the receiving team, and Conflict where it was declined already.
    """
    return _answer_offer(lending, LendingState.DECLINED, by)


def end_lapsed_lendings() -> int:
    """Decline lendings whose offerer left the receiving team or was deactivated; return how many.

    They stay declined even where the offerer comes back, until the node is offered again or the team agrees again.
    """
    open_states = (LendingState.ASKED, LendingState.AGREED)
    rows = Lending.objects.filter(state__in=open_states).exclude(
        pk__in=Lending.objects.offered_by_members().values("pk")
    )
    return sum(_end_lapsed(lending) for lending in rows.select_related("node__team", "team", "asked_by"))


def _make_offer(node: Node, team: Team, by: User) -> None:
    lending = Lending.objects.create(node=node, team=team, asked_by=by)
    _log(lending, f"{by.username} offered {node.name} to {team.name}; an admin there has to agree.", by=by)
    record(verb="node offered", subject=node.name, actor=by, team=team, facts={"from": node.team.name})
    if can_manage(by, team=team):
        agree(lending=lending, by=by)


def _answer_offer(lending: Lending, state: LendingState, by: User) -> Lending:
    if not can_manage(by, team=lending.team):
        raise NotAllowed(f"Only an admin of team “{lending.team.name}” answers for it.")
    with transaction.atomic():
        if not lending.move(state, by=by):
            raise Conflict(f"{lending.node.name}: {lending.words}")
        _log(lending, f"{by.username} {state} that {lending.node.name} measures for {lending.team.name}.", by=by)
        facts = {"from": lending.node.team.name, "key": lending.node.fingerprint}
        record(verb=f"node {state}", subject=lending.node.name, actor=by, team=lending.team, facts=facts)
    return lending


def _end_lapsed(lending: Lending) -> bool:
    member = lending.asked_by.username if lending.asked_by else "The member"
    reason = f"{member}, who offered it, left team {lending.team.name} or was deactivated: it has to be offered again."
    with transaction.atomic():
        moved = lending.move(LendingState.DECLINED, by=None, reason=reason[:300])
        if moved:
            _log(lending, f"{lending.node.name} no longer measures for {lending.team.name}. {reason}")
            facts = {"reason": reason}
            record(verb="node lending lapsed", subject=lending.node.name, team=lending.team, facts=facts)
    return moved


def _log(lending: Lending, text: str, *, by: User | None = None) -> None:
    lending.node.log(NodeEventKind.LENDING, text, actor=by, team=lending.team.pk)
