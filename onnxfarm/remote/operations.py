"""The operations of a farm's API that the client uses: method, path and type of the answer.

The table is written by hand. A generated client would be longer, and building it would need the server.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from farm.contract.api.alerts import AlertOut, AlertPageOut, InvestigationOut, RoundOut, WatchOut
from farm.contract.api.finds import FindOut
from farm.contract.api.fleet import LedgerOut, LendingOut, NodeInvitationOut, NodeOut, TrialOut
from farm.contract.api.people import (
    InvitationOut,
    InvitedOut,
    LinkOut,
    MemberOut,
    MeOut,
    NewTokenOut,
    RetentionOut,
    TeamWithMembersOut,
    TokenOut,
)
from farm.contract.api.registry import HitOut, ModelOut, ModelPageOut, RemovedOut, VersionOut
from farm.contract.api.releases import ReleaseCardOut
from farm.contract.api.runs import RunOut

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Operation(Generic[Parsed]):
    """An operation of the API. `answers`: the type of its JSON answer; `str`, `bytes` or `Nothing` for other content.

    `is_repeatable`: sending it twice does no harm, so it is sent again if the farm cannot be reached.
    """

    method: str
    path: str
    answers: type[Parsed]
    is_repeatable: bool = True


def _once(method: str, path: str, answers: type[Parsed]) -> Operation[Parsed]:
    return Operation(method, path, answers, is_repeatable=False)


Nothing = type(None)

ME = Operation("GET", "/me", MeOut)
SEARCH = Operation("GET", "/search", list[HitOut])

MODELS = Operation("GET", "/models", list[ModelOut])
MODEL = Operation("GET", "/models/{model}", ModelPageOut)
DESCRIBE_MODEL = Operation("PATCH", "/models/{model}", ModelOut)
DELETE_MODEL = _once("DELETE", "/models/{model}", RemovedOut)
RESTORE_MODEL = Operation("POST", "/models/{model}/restore", ModelOut)
VERSION = Operation("GET", "/versions/{version}", VersionOut)
VERSION_FILE = Operation("GET", "/versions/{version}/files/{name}", bytes)
NOTE_VERSION = Operation("PATCH", "/versions/{version}", VersionOut)
DELETE_VERSION = _once("DELETE", "/versions/{version}", RemovedOut)
RESTORE_VERSION = Operation("POST", "/versions/{version}/restore", VersionOut)
COMPLETE_UPLOADS = Operation("POST", "/uploads/complete", VersionOut)

RUNS = Operation("GET", "/runs", list[RunOut])
RUN = Operation("GET", "/runs/{run}", RunOut)
START_RUN = _once("POST", "/runs", RunOut)
CANCEL_RUN = Operation("POST", "/runs/{run}/cancel", RunOut)
MORE_ROUNDS = _once("POST", "/runs/{run}/more", RunOut)
START_FIND = _once("POST", "/finds", FindOut)
FIND = Operation("GET", "/finds/{find}", FindOut)
CANCEL_FIND = Operation("POST", "/finds/{find}/cancel", FindOut)
RESULTS = Operation("GET", "/runs/{run}/results", dict[str, Any])
RESULTS_CSV = Operation("GET", "/runs/{run}/results.csv", str)
TIMINGS = Operation("GET", "/runs/{run}/cells/{cell}/timings.csv", str)
COMPILED = Operation("GET", "/runs/{run}/cells/{cell}/compiled.onnx", bytes)

NODES = Operation("GET", "/nodes", list[NodeOut])
INVITE_NODE = _once("POST", "/nodes/invitations", NodeInvitationOut)
NODE_LEDGER = Operation("GET", "/nodes/{node}/ledger", LedgerOut)
CHANGE_NODE = Operation("PATCH", "/nodes/{node}", NodeOut)
ORDER_NODE = _once("POST", "/nodes/{node}/{what}", NodeOut)
LENDINGS = Operation("GET", "/lendings", list[LendingOut])
ANSWER_LENDING = _once("POST", "/lendings/{lending}/{what}", LendingOut)

TRIALS = Operation("GET", "/trials", list[TrialOut])
ASK_TRIAL = Operation("POST", "/nodes/{node}/trials", TrialOut)
ANSWER_TRIAL = _once("POST", "/trials/{trial}/{what}", TrialOut)

TEAMS = Operation("GET", "/teams", list[TeamWithMembersOut])
CREATE_TEAM = _once("POST", "/teams", TeamWithMembersOut)
CHOOSE_TEAM = Operation("POST", "/teams/{team}/choose", Nothing)
INVITE_PERSON = _once("POST", "/teams/{team}/members", InvitedOut)
SET_ROLE = Operation("PATCH", "/teams/{team}/members/{name}", MemberOut)
REMOVE_PERSON = _once("DELETE", "/teams/{team}/members/{name}", Nothing)
WITHDRAW_INVITATION = _once("DELETE", "/teams/{team}/invitations/{name}", Nothing)
INVITATIONS = Operation("GET", "/invitations", list[InvitationOut])
ANSWER_INVITATION = _once("POST", "/invitations/{invitation}/{what}", InvitationOut)
RETENTION = Operation("GET", "/teams/{team}/retention", RetentionOut)
SET_RETENTION = Operation("PUT", "/teams/{team}/retention", RetentionOut)
MAKE_LINK = _once("POST", "/users/{name}/sign-in-link", LinkOut)
CLOSE_ACCOUNT = _once("POST", "/users/{name}/close", Nothing)
TOKENS = Operation("GET", "/tokens", list[TokenOut])
MAKE_TOKEN = _once("POST", "/tokens", NewTokenOut)
CLOSE_TOKEN = _once("DELETE", "/tokens/{token}", TokenOut)

WATCHES = Operation("GET", "/watches", list[WatchOut])
WATCH = Operation("GET", "/watches/{watch}", WatchOut)
CREATE_WATCH = _once("POST", "/watches", WatchOut)
CHANGE_WATCH = Operation("PATCH", "/watches/{watch}", WatchOut)
REMOVE_WATCH = _once("DELETE", "/watches/{watch}", Nothing)
CALL_WATCH = _once("POST", "/watches/{watch}/call", list[RoundOut])
ROUNDS = Operation("GET", "/watches/{watch}/rounds", list[RoundOut])
ALERTS = Operation("GET", "/alerts", list[AlertOut])
ALERT = Operation("GET", "/alerts/{alert}", AlertPageOut)
ORDER_ALERT = _once("POST", "/alerts/{alert}/{what}", AlertPageOut)
BISECT_ALERT = _once("POST", "/alerts/{alert}/bisections", InvestigationOut)
ALERT_REPORT = Operation("GET", "/alerts/{alert}/report.zip", bytes)
RELEASE = Operation("GET", "/releases/{distribution}/{version}", ReleaseCardOut)
ALERT_ISSUE = Operation("GET", "/alerts/{alert}/issue.md", str)
