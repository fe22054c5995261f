"""Offering a node to other teams, and their answer."""

from django.db import transaction

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_manage, team_named
from farm.accounts.services import record
from farm.base.refusals import Conflict, NotAllowed
from farm.fleet.models import Lending, Node
from farm.fleet.services.health import check_manages
from farm.fleet.states import LendingState, NodeEventKind, NodeHealth


def share(*, node: Node, by: User, teams: list[str]) -> Node:
    """Offers a node to these other teams, by name, and takes it back from all that are not named.

    A team is measured for once an admin of it agrees; where `by` is one, that is said with the offer. Raises NotAllowed
    and Missing for a team that `by` does not belong to.
    """
    check_manages(node, by)
    known = {lending.team.name: lending for lending in node.lendings.select_related("team")}
    names = [name for name in dict.fromkeys(teams) if name != node.team.name]
    new = [team_named(name, user=by) for name in names if name not in known]
    with transaction.atomic():
        for name in known.keys() - set(names):
            _withdraw(known[name], by)
        for team in new:
            _offer(node, team, by)
    return node


def agree(*, lending: Lending, by: User) -> Lending:
    """asked or declined → agreed: from now on the node measures for the team. Raises NotAllowed, Conflict."""
    if lending.node.health == NodeHealth.RETIRED:
        raise Conflict(f"{lending.node.name} was removed from the farm; it no longer measures for any team.")
    if not Lending.objects.of_members().filter(pk=lending.pk).exists():
        raise Conflict(
            f"The member who offered {lending.node.name} is no longer in team “{lending.team.name}”.",
            code="offer_lapsed",
            hint="Its owner, or an admin of its team, has to offer it again.",
        )
    return _answered(lending, LendingState.AGREED, by)


def decline(*, lending: Lending, by: User) -> Lending:
    """asked or agreed → declined: the node gets no more of the team's models. Raises NotAllowed, Conflict."""
    return _answered(lending, LendingState.DECLINED, by)


def end_lapsed_lendings() -> int:
    """Ends lendings whose offerer left or was deactivated, so that coming back revives none; gives how many."""
    open_states = (LendingState.ASKED, LendingState.AGREED)
    rows = Lending.objects.filter(state__in=open_states).exclude(pk__in=Lending.objects.of_members().values("pk"))
    return sum(_lapse(lending) for lending in rows.select_related("node__team", "team", "asked_by"))


def _offer(node: Node, team: Team, by: User) -> None:
    lending = Lending.objects.create(node=node, team=team, asked_by=by)
    _say(lending, f"{by.username} offered {node.name} to {team.name}; an admin there has to agree.", by=by)
    record(verb="node offered", subject=node.name, actor=by, team=team, facts={"from": node.team.name})
    if can_manage(by, team=team):
        agree(lending=lending, by=by)


def _withdraw(lending: Lending, by: User) -> None:
    _say(lending, f"{lending.node.name} no longer measures for {lending.team.name}.", by=by)
    record(verb="node taken back", subject=lending.node.name, actor=by, team=lending.team)
    lending.delete()


def _answered(lending: Lending, state: LendingState, by: User) -> Lending:
    if not can_manage(by, team=lending.team):
        raise NotAllowed(f"Only an admin of team “{lending.team.name}” answers for it.")
    with transaction.atomic():
        if not lending.move(state, by=by):
            raise Conflict(f"{lending.node.name}: {lending.words}")
        _say(lending, f"{by.username} {state} that {lending.node.name} measures for {lending.team.name}.", by=by)
        facts = {"from": lending.node.team.name, "key": lending.node.fingerprint}
        record(verb=f"node {state}", subject=lending.node.name, actor=by, team=lending.team, facts=facts)
    return lending


def _lapse(lending: Lending) -> bool:
    who = lending.asked_by.username if lending.asked_by else "The member"
    reason = f"{who}, who offered it, left team {lending.team.name} or was deactivated: it has to be offered again."
    with transaction.atomic():
        moved = lending.move(LendingState.DECLINED, by=None, reason=reason[:300])
        if moved:
            _say(lending, f"{lending.node.name} no longer measures for {lending.team.name}. {reason}")
            facts = {"reason": reason}
            record(verb="node lending lapsed", subject=lending.node.name, team=lending.team, facts=facts)
    return moved


def _say(lending: Lending, text: str, *, by: User | None = None) -> None:
    """Into the node's log; the receiving team has it in its audit log."""
    lending.node.log(NodeEventKind.LENDING, text, actor=by, team=lending.team.pk)
