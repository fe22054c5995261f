"""Trials of providers on nodes, over HTTP. To ask and to answer needs the scope `nodes`."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.states import Scope
from farm.api.auth import BrowserAuth, TokenAuth, person
from farm.api.shapes import fill, username
from farm.contract.api.fleet import TrialOut
from farm.fleet import selectors, services
from farm.fleet.models import Trial

router = Router(tags=["fleet"], auth=[TokenAuth(changes=Scope.NODES), BrowserAuth()])
ANSWERS = {"allow": services.allow_trial, "decline": services.decline_trial}
MAX_TRIALS = 1000


class TrialOrder(Schema):
    """What to try."""

    provider: str = Field(max_length=64, description="the provider's name, such as openvino")


@router.get("/trials", response=list[TrialOut])
def trials(request: HttpRequest) -> list[TrialOut]:
    """Trials on the nodes of your teams, newest first."""
    return [_shape_trial(row) for row in selectors.trials_visible_to(person(request))[:MAX_TRIALS]]


@router.post("/nodes/{int:node_id}/trials", response={201: TrialOut})
def ask(request: HttpRequest, node_id: int, payload: TrialOrder) -> Status[TrialOut]:
    """Ask a node's owner to let it try a provider; where the owner allows trials, or you manage it, it begins."""
    user = person(request)
    row = services.ask_for_trial(node=selectors.node(user, node_id), provider=payload.provider, by=user)
    return Status(201, _shape_trial(selectors.trial(user, row.pk)))


@router.post("/trials/{int:trial_id}/{what}", response=TrialOut)
def answer(request: HttpRequest, trial_id: int, what: Literal["allow", "decline"]) -> TrialOut:
    """Allow or decline that your node tries a provider."""
    user = person(request)
    ANSWERS[what](trial=selectors.trial(user, trial_id), by=user)
    return _shape_trial(selectors.trial(user, trial_id))


def _shape_trial(row: Trial) -> TrialOut:
    return fill(
        TrialOut,
        row,
        node=row.node.name,
        node_id=row.node_id,
        sentence=row.words,
        asked_by=username(row.asked_by),
        answered_by=username(row.answered_by),
    )
