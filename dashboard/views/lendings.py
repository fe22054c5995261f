"""Answers of a team to nodes that others offer it, from the fleet page."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from dashboard.views.access import action, person
from dashboard.views.orders import ordered
from farm.accounts.selectors import can_manage
from farm.base.refusals import Missing
from farm.fleet import selectors, services

if TYPE_CHECKING:
    from farm.fleet.models import Lending

ANSWERS: dict[str, Callable[..., "Lending"]] = {"agree": services.agree, "decline": services.decline}
# what an admin may answer in each state, and how the button is called
BUTTONS = {
    "asked": (("agree", "Agree"), ("decline", "Decline")),
    "agreed": (("decline", "Revoke"),),
    "declined": (("agree", "Agree"),),
}
SHOWN = 200


def offered(request: HttpRequest) -> list[dict[str, object]]:
    """Nodes of others that were offered to the reader's teams, each with what the reader may answer."""
    user = person(request)
    rows = list(selectors.lendings_to(user)[:SHOWN])
    # asked once a team
    managed = {team for team in {one.team for one in rows} if can_manage(user, team=team)}
    return [{"lending": one, "buttons": BUTTONS[one.state] if one.team in managed else ()} for one in rows]


@action
def answer(request: HttpRequest, lending_id: int, what: str) -> HttpResponseBase:
    """An admin's answer; a refusal is said on the fleet page."""
    found = selectors.lending(person(request), lending_id)
    if what not in ANSWERS:
        raise Missing(f"Unknown answer “{what}”.", hint="See the fleet page for available answers.")
    act = ANSWERS[what]
    ordered(request, lambda: act(lending=found, by=person(request)), lambda row: f"{row.node.name}: {row.words}")
    return redirect("dashboard:fleet")
