"""Enrolled machines."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Lower
from django.utils import timezone

from farm.accounts.models import Membership, OwnedQuerySet, Team
from farm.accounts.states import WRITING_ROLES
from farm.contract.node import MAX_DOING, NODE_NAME, NodeSettings, SelfTest
from farm.contract.reports import Facts
from farm.contract.version import name_node_queue, name_tag_queue
from farm.fleet.models.event import NodeEvent
from farm.fleet.models.lendings import Lending
from farm.fleet.states import HEALTH_ARROWS, NodeEventKind, NodeHealth, NodeState, Trials
from farm.rules.presenting.idle_reasons import PENDING, explain_pause
from farm.rules.runtimes.web import BROWSER

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from farm.accounts.models import User


# kinds of log lines that a machine can write again and again; MAX_ROUTINE of them are kept for a node, and at every
# TRIMMED_EVERY-th line the others are deleted
ROUTINE = (
    NodeEventKind.ONLINE,
    NodeEventKind.OFFLINE,
    NodeEventKind.REFUSED,
    NodeEventKind.SECRET_ISSUED,
    NodeEventKind.RUNTIMES,
)
MAX_ROUTINE = 1_000
TRIMMED_EVERY = 50


class NodeQuerySet(OwnedQuerySet["Node"]):
    """Queries for nodes: those a person may see or manage, and those that may measure."""

    def managed_by(self, user: "User | AnonymousUser") -> Self:
        """Filter to nodes that the user owns, or whose team the user manages."""
        if not user.is_authenticated:
            return self.none()
        return self.filter(Q(owner=user) | Q(team__in=Team.objects.managed_by(user)))

    def with_writing_owner(self) -> Self:
        """Filter to nodes whose owner is active, and may start runs in the node's team or is an administrator."""
        writes = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("owner"), role__in=WRITING_ROLES)
        return self.filter(Q(owner__is_superuser=True) | Exists(writes), owner__is_active=True)

    def serving(self, team: Team | int, *, uploader: "User | int | None") -> Self:
        """Filter to nodes that may measure a version of this team: its own, and those lent to it.

        Their owners are active and may write in the nodes' own teams; health and state do not count here. A node
        without a working sandbox measures only what its owner uploaded, so `uploader` is who uploaded the version; None
        stands for nobody known.
        """
        # no join, so that nothing has to be made distinct: that would compare whole rows, logs and facts included
        lent = Lending.objects.in_force().filter(team=team).values("node")
        walled = ~Q(sandbox="none") if uploader is None else ~Q(sandbox="none") | Q(owner=uploader)
        return self.with_writing_owner().filter(Q(team=team) | Q(pk__in=lent), walled)

    def known_to(self, team: Team) -> Self:
        """Filter to nodes that all members of this team may hear of.

        These are nodes of teams to which every member belongs, their own among them, and those that were offered to
        this team, whatever it answered.
        """
        members = team.memberships.values("user")
        shared = Count("memberships", filter=Q(memberships__user__in=members))
        # a team that has lost its members hears of no other team's nodes
        teams = Team.objects.annotate(shared=shared).filter(shared=max(len(members), 1)).order_by().values("pk")
        return self.filter(Q(pk__in=team.lendings.values("node")) | Q(team__in=teams))

    def seen_and_active(self) -> Self:
        """Filter to nodes whose health is active and that have said hello at least once; they may be offline now."""
        return self.filter(health=NodeHealth.ACTIVE).exclude(seen_at=None)


class Node(models.Model):
    """A machine that measures.

    `may_take_blocks` asks for an active health, and that the owner's settings allow work now. It may be true while the
    node is offline. `all_tags` are those of its probe and of its owner, sorted. `all_queues` are its own and one for
    each of these tags, whatever its health. `facts`, `settings` and `self_test` are read from JSON each time.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="nodes")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="nodes")
    name = models.CharField(max_length=64, validators=[RegexValidator(NODE_NAME, "A node is not named by a number.")])
    public_key = models.CharField(max_length=44, unique=True)
    fingerprint = models.CharField(max_length=40)
    # whether it is there, and whether it may work
    state = models.CharField(max_length=8, choices=NodeState.choices, default=NodeState.OFFLINE)
    health = models.CharField(max_length=12, choices=NodeHealth.choices, default=NodeHealth.PENDING)
    health_reason = models.CharField(max_length=500, blank=True)
    contract_version = models.PositiveSmallIntegerField(default=1)
    facts_json = models.JSONField(default=dict)
    # the evidence that a probe gave, by hardware tag
    tags = models.JSONField(default=dict)
    # tags that the owner gave
    owner_tags = models.JSONField(default=list, blank=True)
    # providers that a probe has proven, by ONNX Runtime's names
    providers = models.JSONField(default=list)
    # runtimes that are installed now, as `distribution==version`
    runtimes = models.JSONField(default=list)
    # what releases beyond the farm's table were seen to load, by `distribution==version`
    loads = models.JSONField(default=dict, db_default={})
    settings_json = models.JSONField(default=dict, blank=True)
    sandbox = models.CharField(max_length=12, default="none")
    # its agent's name for the machine: nodes of one owner with the same name measure in turn. Empty: unknown
    host = models.CharField(max_length=16, blank=True, default="", db_default="")
    is_emulated = models.BooleanField(default=False)
    # failures of blocks in a row that were the node's fault
    failures = models.PositiveSmallIntegerField(default=0)
    # the newest self-test, and the time of the first one since the node joined or was last resumed
    self_test_json = models.JSONField(null=True, blank=True)
    self_test_ms = models.FloatField(null=True, blank=True)
    # the summary of its newest A/A pairs, updated with each pair: their number, how many of them were judged slower or
    # faster, their noise floor, and the newest block among them
    null_pairs = models.PositiveIntegerField(default=0)
    null_alarms = models.PositiveIntegerField(default=0)
    null_deviation = models.FloatField(null=True)
    null_margin = models.FloatField(null=True)
    # of further metrics, by name
    null_margins = models.JSONField(default=dict, db_default={})
    null_block = models.PositiveBigIntegerField(null=True)
    # whether its owner lets it try providers that others ask for, and whether its agent is new enough to be asked
    trials_allowed = models.CharField(max_length=5, choices=Trials.choices, default=Trials.ASK, db_default=Trials.ASK)
    understands_trials = models.BooleanField(default=False, db_default=False)
    # what it waits for or tries, in its own words; the block's row says what it does for a block. Empty: nothing, or
    # the node's agent is too old to say it
    doing = models.CharField(max_length=MAX_DOING, blank=True, default="")
    log_tail = models.TextField(blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = NodeQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            # a matrix names nodes; one that left the farm gives its name free
            models.UniqueConstraint(Lower("name"), condition=~Q(health="retired"), name="one_node_per_name")
        ]
        indexes = [models.Index(fields=["state", "health"])]

    def __str__(self) -> str:
        return self.name

    @property
    def facts(self) -> Facts:
        return Facts.model_validate(self.facts_json)

    @property
    def settings(self) -> NodeSettings:
        return NodeSettings.model_validate(self.settings_json)

    @property
    def is_browser(self) -> bool:
        return self.sandbox == BROWSER

    @property
    def all_tags(self) -> tuple[str, ...]:
        return tuple(sorted({*self.tags, *self.owner_tags}))

    @property
    def device(self) -> str:
        """The key of the machine, on which only one block at a time is measured: CPU load disturbs all of it.

        It holds the owner, so that nobody else's node can claim to be on this machine and keep it from measuring.
        """
        return f"host:{self.owner_id}:{self.host}" if self.host and self.owner_id else f"node:{self.pk}"

    @property
    def others_on_machine(self) -> "NodeQuerySet":
        """The other nodes of the same owner on this machine; none where the machine is not known."""
        if not self.host or not self.owner_id:
            return Node.objects.none()
        return Node.objects.filter(owner=self.owner_id, host=self.host).exclude(pk=self.pk)

    @property
    def last_heard(self) -> str:
        """When it last said hello, in words: `last heard of at 11:42 UTC`, or `not heard of yet`."""
        if self.seen_at is None:
            return "not heard of yet"
        is_today = self.seen_at.date() == timezone.now().date()
        return f"last heard of {self.seen_at:{'at %H:%M' if is_today else 'on %Y-%m-%d at %H:%M'}} UTC"

    @property
    def self_test(self) -> SelfTest | None:
        return None if self.self_test_json is None else SelfTest.model_validate(self.self_test_json)

    @property
    def pause(self) -> str:
        """The sentence that says why its owner's settings keep it from taking blocks now; empty where they do not."""
        words = explain_pause(self.settings, timezone.now())
        return f"{words[0].upper()}{words[1:]}." if words else ""

    @property
    def obstacle(self) -> str:
        """Why the node takes no blocks while it is online, to follow "is online but"; empty where it takes some."""
        if self.health == NodeHealth.ACTIVE:
            return explain_pause(self.settings, timezone.now())
        return PENDING if self.health == NodeHealth.PENDING else self.health

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the node consumes now; none while it may take no block."""
        return () if self.obstacle else self.all_queues

    @property
    def all_queues(self) -> tuple[str, ...]:
        return (name_node_queue(str(self.pk)), *(name_tag_queue(tag) for tag in self.all_tags))

    @property
    def may_take_blocks(self) -> bool:
        return bool(self.queues)

    def log(self, kind: NodeEventKind, text: str, *, actor: "User | None" = None, **facts: object) -> NodeEvent:
        """Write a line to this node's log, with the facts as JSON; old routine lines are deleted now and then."""
        event = NodeEvent.objects.create(node=self, kind=kind, text=text, actor=actor, facts=facts)
        if kind in ROUTINE and not event.pk % TRIMMED_EVERY:
            self._trim()
        return event

    def _trim(self) -> None:
        """Delete the oldest lines of the kinds that the machine itself can write without end."""
        routine = self.events.filter(kind__in=ROUTINE)
        oldest_kept = routine.values_list("pk", flat=True)[MAX_ROUTINE : MAX_ROUTINE + 1]
        for pk in oldest_kept:
            routine.filter(pk__lte=pk).delete()

    def change_health(
        self, health: NodeHealth, kind: NodeEventKind, *, reason: str = "", actor: "User | None" = None
    ) -> bool:
        """Change the health as HEALTH_ARROWS allows, with its reason, and log it as an event of this kind.

        An empty reason clears the one before. Return False, with nothing changed or logged, where HEALTH_ARROWS does
        not allow it.
        """
        changed = Node.objects.filter(pk=self.pk, health__in=HEALTH_ARROWS[health]).update(
            health=health, health_reason=reason
        )
        if changed:
            self.health, self.health_reason = health, reason
            self.log(kind, reason or f"{self.name} is {health.label.lower()}.", actor=actor)
        return bool(changed)

    def change_state(self, state: NodeState) -> bool:
        """Set the node online or offline; log it and return True where it was not so before."""
        changed = Node.objects.filter(pk=self.pk).exclude(state=state).update(state=state)
        self.state = state
        if changed:
            kind = NodeEventKind.ONLINE if state == NodeState.ONLINE else NodeEventKind.OFFLINE
            self.log(kind, f"{self.name} is {state}.")
        return bool(changed)
