"""Reads nodes, trials and lendings, for people, the gateway and planning.

Nodes come in the order of their ids, retired ones too unless a docstring says otherwise; events, trials and lendings
come newest first. Nodes without their logs also lack their self-tests (UNREAD); both are read when they are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.accounts.selectors import Anyone
from farm.base.refusals import require_row
from farm.base.secrecy import hash_secret
from farm.contract.cells import Loads
from farm.fleet.models import Lending, Node, NodeEvent, Trial
from farm.fleet.models.trial import OPEN_TRIALS
from farm.fleet.states import NodeHealth, NodeState, Trials, TrialState
from farm.rules.comparing.comparisons import MARGIN
from farm.rules.planning.plans import NodeOffer
from farm.rules.presenting.idle_reasons import NO_SANDBOX, explain_not_lent
from farm.rules.runtimes import providers
from farm.rules.runtimes.observed_loads import merge_observed_loads

# long columns that a node's requests do not need
UNREAD = ("log_tail", "self_test_json")
# nodes of these healths are refused with any secret
SHUT_OUT = (NodeHealth.PENDING, NodeHealth.RETIRED)
# a trial that failed is not repeated sooner, because nodes rarely change
AGAIN_AFTER: Final = timedelta(days=1)
TRIABLE: Final = frozenset(provider.name for provider in providers.PROVIDERS if providers.can_be_probed(provider))
RELATED = ("node__team", "node__owner", "team", "asked_by", "answered_by")


def name_or_removed(node: Node | None) -> str:
    return node.name if node is not None else "a removed node"


def nodes_visible_to(user: Anyone) -> QuerySet[Node]:
    return Node.objects.visible_to(user).select_related("team", "owner")


def nodes_without_logs(user: Anyone) -> QuerySet[Node]:
    return nodes_visible_to(user).defer(*UNREAD)


def newest_waits(nodes: Sequence[Node]) -> dict[str, str]:
    """Map machines, by `Node.device`, to what the node heard last there says that it waits for or tries.

    That may be another online node of the same machine than those in `nodes`. Machines whose online nodes say nothing
    are left out.
    """
    hosts = {node.host for node in nodes if node.doing and node.host}
    waiting = [node for node in nodes if node.doing and node.state == NodeState.ONLINE]
    if hosts:
        waiting += Node.objects.filter(state=NodeState.ONLINE, host__in=hosts).exclude(doing="").defer(*UNREAD)
    return {node.device: node.doing for node in sorted(waiting, key=lambda node: node.seen_at or node.created_at)}


def count_nodes_online(user: Anyone) -> tuple[int, int]:
    """Count the nodes that the user may see: return how many of them are online, and how many there are in all, retired
    ones too. Pending nodes are not counted."""
    online = Count("pk", filter=Q(state=NodeState.ONLINE))
    counts = Node.objects.visible_to(user).exclude(health=NodeHealth.PENDING).aggregate(online=online, all=Count("pk"))
    return counts["online"], counts["all"]


def node(user: Anyone, node_id: int) -> Node:
    """Return a node by its id, retired ones too. Raises Missing where there is none that the user may see."""
    return require_row(nodes_visible_to(user).filter(pk=node_id), f"There is no node {node_id} that you can access.")


def can_manage_node(user: Anyone, node: Node) -> bool:
    return Node.objects.managed_by(user).filter(pk=node.pk).exists()


def node_events(node: Node) -> QuerySet[NodeEvent]:
    return node.events.select_related("actor")


def find_connected_node(key: int) -> Node | None:
    """Read a node by its id, whether or not it is online.

    None where there is none or it may have no connection: pending, retired, or of a deactivated or deleted owner.
    """
    return Node.objects.exclude(health__in=SHUT_OUT).filter(pk=key, owner__is_active=True).first()


def find_node_of_secret(secret: str) -> Node | None:
    """Find the node that this bearer secret lets in.

    None where the secret is unknown, expired or revoked, the node pending or retired, or its owner deactivated or
    deleted. The node comes without its log and self-test, which are read when they are asked for.
    """
    valid = {"secrets__revoked_at": None, "secrets__expires_at__gt": Now()}
    # nodes of deactivated and deleted owners are refused
    nodes = Node.objects.filter(secrets__digest=hash_secret(secret), owner__is_active=True, **valid)
    return nodes.exclude(health__in=SHUT_OUT).defer(*UNREAD).first()


def node_offers(*, team: Team, uploader: User | None) -> list[NodeOffer]:
    """List the nodes that may measure what `uploader` uploaded for this team, as planning sees them, by their ids.

    These are active nodes that have said hello once, offline ones too; each whose agent knows trials says which
    providers it may try.
    """
    nodes = list(Node.objects.seen_and_active().serving(team, uploader=uploader).defer(*UNREAD).order_by("pk"))
    tried = _list_trials([node for node in nodes if node.understands_trials])
    return [
        make_node_offer(node).model_copy(update=_trials_of(node, tried) if node.understands_trials else {})
        for node in nodes
    ]


def list_unavailable_nodes(team: Team, *, uploader: User | None) -> list[tuple[Node, str]]:
    """List the online nodes that the whole team may see and that take no blocks of it now, each with the reason.

    The reason is a clause to follow "is online but". They are in the order of their ids, without retired nodes, and
    without those that have a sandbox and lack only an owner who may write.
    """
    serving = set(Node.objects.serving(team, uploader=uploader).values_list("pk", flat=True))
    lent = set(Lending.objects.in_force().filter(team=team).values_list("node", flat=True))
    online = Node.objects.known_to(team).filter(state=NodeState.ONLINE).exclude(health=NodeHealth.RETIRED)
    unavailable = []
    for node in online.defer(*UNREAD).order_by("pk"):
        reason = node.obstacle
        if node.team_id != team.pk and node.pk not in lent:
            reason = explain_not_lent(team.name)
        elif node.pk not in serving and node.sandbox == "none":
            reason = NO_SANDBOX
        if reason:
            unavailable.append((node, reason))
    return unavailable


def _list_trials(nodes: Sequence[Node]) -> dict[int, dict[str, TrialState]]:
    """Map node ids to the states of their trials, by provider, that are open or failed lately."""
    states: dict[int, dict[str, TrialState]] = {}
    lately = Q(state=TrialState.FAILED, ended_at__gt=timezone.now() - AGAIN_AFTER)
    rows = Trial.objects.filter(lately | Q(state__in=OPEN_TRIALS), node__in=nodes).order_by("pk") if nodes else ()
    for trial in rows:
        states.setdefault(trial.node_id, {})[trial.provider] = TrialState(trial.state)
    return states


def _trials_of(node: Node, tried: Mapping[int, Mapping[str, TrialState]]) -> dict[str, frozenset[str]]:
    """Return the providers that a node may try, and those that its owner can be asked to allow."""
    states = tried.get(node.pk, {})
    allowed = {name for name, state in states.items() if state == TrialState.PENDING}
    untried = TRIABLE.difference(node.providers, states) if node.trials_allowed != Trials.NEVER else frozenset()
    is_standing = node.trials_allowed == Trials.ALLOW
    return {
        "may_try": frozenset(allowed | untried if is_standing else allowed),
        "may_be_asked": frozenset() if is_standing else frozenset(untried),
    }


def trials_visible_to(user: Anyone) -> QuerySet[Trial]:
    nodes = Node.objects.visible_to(user).order_by().values("pk")
    return Trial.objects.filter(node__in=nodes).select_related("node__team", "node__owner", "asked_by", "answered_by")


def nodes_awaiting_approval(user: Anyone) -> QuerySet[Node]:
    """Return the pending nodes that the user owns or whose team they manage, without their logs; the oldest first."""
    return Node.objects.managed_by(user).filter(health=NodeHealth.PENDING).defer(*UNREAD).order_by("pk").distinct()


def trials_awaiting_answer(user: Anyone) -> QuerySet[Trial]:
    """Return the trials on nodes that the user manages, which wait for the owner's answer; the newest first."""
    nodes = Node.objects.managed_by(user).order_by().values("pk")
    return trials_visible_to(user).filter(node__in=nodes, state=TrialState.ASKED)


def trial(user: Anyone, trial_id: int) -> Trial:
    """Return a trial by its id, also one that has ended. Raises Missing where there is none that the user may see."""
    return require_row(
        trials_visible_to(user).filter(pk=trial_id),
        f"There is no trial {trial_id} that you can access.",
        hint="`onnxfarm node trials` lists them.",
    )


def runtimes_on_nodes(*, team: Team, uploader: User | None) -> tuple[set[str], dict[str, Loads]]:
    """Collect the runtimes installed on the nodes that may measure this upload, as `distribution==version`.

    Offline nodes count too. Return with them what releases beyond the farm's table were seen to load there, by version.
    """
    nodes = list(Node.objects.seen_and_active().serving(team, uploader=uploader).only("runtimes", "loads"))
    return {runtime for node in nodes for runtime in node.runtimes}, collect_loads(nodes)


def collect_loads(nodes: Iterable[Node]) -> dict[str, Loads]:
    """Collect what releases beyond the farm's table were seen to load on these nodes, by version."""
    return merge_observed_loads({name: Loads(**loads) for name, loads in node.loads.items()} for node in nodes)


def make_node_offer(node: Node) -> NodeOffer:
    """Describe a node for planning. Until it has measured A/A pairs, its noise is None and its margin is MARGIN.

    The providers that it may try are not filled in here: `node_offers` adds them.
    """
    return NodeOffer(
        id=str(node.pk),
        name=node.name,
        tags=frozenset(node.all_tags),
        providers=frozenset(node.providers),
        versions=frozenset(node.runtimes),
        loads=node.loads,
        is_browser=node.is_browser,
        cores=node.facts_json.get("logical_cores") or None,
        noise=node.null_deviation or None,
        margin=node.null_margin or MARGIN,
        margins=node.null_margins,
    )


def lendings_visible_to(user: Anyone) -> QuerySet[Lending]:
    """Return lendings of nodes that the user may see, and to the user's teams; the newest first.

    Those that wait for an answer or were declined are among them.
    """
    teams = Team.objects.visible_to(user).values("pk")
    nodes = Node.objects.visible_to(user).order_by().values("pk")
    rows = Lending.objects.filter(team__in=teams) | Lending.objects.filter(node__in=nodes)
    return rows.select_related(*RELATED).defer("node__facts_json", "node__log_tail").order_by("-pk")


def lendings_to_own_teams(user: Anyone) -> QuerySet[Lending]:
    teams = Team.objects.visible_to(user).values("pk")
    return lendings_visible_to(user).filter(team__in=teams)


def lending(user: Anyone, lending_id: int) -> Lending:
    """Return a lending by its id. Raises Missing where there is none that the user may see."""
    return require_row(
        lendings_visible_to(user).filter(pk=lending_id),
        f"There is no lending {lending_id} that you can access.",
        hint="`onnxfarm node lendings` lists them.",
    )
