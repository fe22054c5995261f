"""The operations of a farm's API that the client uses: method, path and type of the answer.

The table is written by hand. A generated client would be longer, and building it would need the server.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from farm.contract.api import alerts, finds, fleet, people, registry, releases, runs

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Operation(Generic[Parsed]):
    """An operation of the API. `answers`: the type of its JSON answer; `str`, `bytes` or `Nothing` for other content.

    `is_repeatable`: sending it twice does no harm, so it is sent again if the farm cannot be reached or is unavailable.
    """

    method: str
    path: str
    answers: type[Parsed]
    is_repeatable: bool = True


def _once(method: str, path: str, answers: type[Parsed]) -> Operation[Parsed]:
    return Operation(method, path, answers, is_repeatable=False)


Nothing = type(None)

ME = Operation("GET", "/me", people.MeOut)
SEARCH = Operation("GET", "/search", list[registry.HitOut])

MODELS = Operation("GET", "/models", list[registry.ModelOut])
MODEL = Operation("GET", "/models/{model}", registry.ModelPageOut)
DESCRIBE_MODEL = Operation("PATCH", "/models/{model}", registry.ModelOut)
DELETE_MODEL = _once("DELETE", "/models/{model}", registry.RemovedOut)
RESTORE_MODEL = Operation("POST", "/models/{model}/restore", registry.ModelOut)
VERSION = Operation("GET", "/versions/{version}", registry.VersionOut)
VERSION_FILE = Operation("GET", "/versions/{version}/files/{name}", bytes)
NOTE_VERSION = Operation("PATCH", "/versions/{version}", registry.VersionOut)
DELETE_VERSION = _once("DELETE", "/versions/{version}", registry.RemovedOut)
RESTORE_VERSION = Operation("POST", "/versions/{version}/restore", registry.VersionOut)
COMPLETE_UPLOADS = Operation("POST", "/uploads/complete", registry.VersionOut)

RUNS = Operation("GET", "/runs", list[runs.RunOut])
RUN = Operation("GET", "/runs/{run}", runs.RunOut)
START_RUN = _once("POST", "/runs", runs.RunOut)
CANCEL_RUN = Operation("POST", "/runs/{run}/cancel", runs.RunOut)
MORE_ROUNDS = _once("POST", "/runs/{run}/more", runs.RunOut)
START_FIND = _once("POST", "/finds", finds.FindOut)
FIND = Operation("GET", "/finds/{find}", finds.FindOut)
CANCEL_FIND = Operation("POST", "/finds/{find}/cancel", finds.FindOut)
RESULTS = Operation("GET", "/runs/{run}/results", dict[str, Any])
RESULTS_CSV = Operation("GET", "/runs/{run}/results.csv", str)
TIMINGS = Operation("GET", "/runs/{run}/cells/{cell}/timings.csv", str)
COMPILED = Operation("GET", "/runs/{run}/cells/{cell}/compiled.onnx", bytes)

NODES = Operation("GET", "/nodes", list[fleet.NodeOut])
INVITE_NODE = _once("POST", "/nodes/invitations", fleet.NodeInvitationOut)
NODE_LEDGER = Operation("GET", "/nodes/{node}/ledger", fleet.LedgerOut)
CHANGE_NODE = Operation("PATCH", "/nodes/{node}", fleet.NodeOut)
ORDER_NODE = _once("POST", "/nodes/{node}/{what}", fleet.NodeOut)
LENDINGS = Operation("GET", "/lendings", list[fleet.LendingOut])
ANSWER_LENDING = _once("POST", "/lendings/{lending}/{what}", fleet.LendingOut)

TRIALS = Operation("GET", "/trials", list[fleet.TrialOut])
ASK_TRIAL = Operation("POST", "/nodes/{node}/trials", fleet.TrialOut)
ANSWER_TRIAL = _once("POST", "/trials/{trial}/{what}", fleet.TrialOut)

TEAMS = Operation("GET", "/teams", list[people.TeamWithMembersOut])
CREATE_TEAM = _once("POST", "/teams", people.TeamWithMembersOut)
CHOOSE_TEAM = Operation("POST", "/teams/{team}/choose", Nothing)
INVITE_PERSON = _once("POST", "/teams/{team}/members", people.InvitedOut)
SET_ROLE = Operation("PATCH", "/teams/{team}/members/{name}", people.MemberOut)
REMOVE_PERSON = _once("DELETE", "/teams/{team}/members/{name}", Nothing)
WITHDRAW_INVITATION = _once("DELETE", "/teams/{team}/invitations/{name}", Nothing)
INVITATIONS = Operation("GET", "/invitations", list[people.InvitationOut])
ANSWER_INVITATION = _once("POST", "/invitations/{invitation}/{what}", people.InvitationOut)
RETENTION = Operation("GET", "/teams/{team}/retention", people.RetentionOut)
SET_RETENTION = Operation("PUT", "/teams/{team}/retention", people.RetentionOut)
MAKE_LINK = _once("POST", "/users/{name}/sign-in-link", people.LinkOut)
CLOSE_ACCOUNT = _once("POST", "/users/{name}/close", Nothing)
TOKENS = Operation("GET", "/tokens", list[people.TokenOut])
MAKE_TOKEN = _once("POST", "/tokens", people.NewTokenOut)
CLOSE_TOKEN = _once("DELETE", "/tokens/{token}", people.TokenOut)

WATCHES = Operation("GET", "/watches", list[alerts.WatchOut])
WATCH = Operation("GET", "/watches/{watch}", alerts.WatchOut)
CREATE_WATCH = _once("POST", "/watches", alerts.WatchOut)
CHANGE_WATCH = Operation("PATCH", "/watches/{watch}", alerts.WatchOut)
REMOVE_WATCH = _once("DELETE", "/watches/{watch}", Nothing)
CALL_WATCH = _once("POST", "/watches/{watch}/call", list[alerts.RoundOut])
ROUNDS = Operation("GET", "/watches/{watch}/rounds", list[alerts.RoundOut])
ALERTS = Operation("GET", "/alerts", list[alerts.AlertOut])
ALERT = Operation("GET", "/alerts/{alert}", alerts.AlertPageOut)
ORDER_ALERT = _once("POST", "/alerts/{alert}/{what}", alerts.AlertPageOut)
BISECT_ALERT = _once("POST", "/alerts/{alert}/bisections", alerts.InvestigationOut)
ALERT_REPORT = Operation("GET", "/alerts/{alert}/report.zip", bytes)
RELEASE = Operation("GET", "/releases/{distribution}/{version}", releases.ReleaseCardOut)
ALERT_ISSUE = Operation("GET", "/alerts/{alert}/issue.md", str)
