"""Runs trials of a provider on a node that has not proven it: asked for, allowed by the owner, tried, stored.

A node does one trial at a time: it installs the provider's packages and runs a small model in its sandbox. Each step
is written to the node's log, and none to the audit log.
"""

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from farm.accounts.models import Team, User
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract import node as messages
from farm.contract.numbers import is_row_number
from farm.contract.texts import replace_controls
from farm.fleet.models import Lending, Node, Trial
from farm.fleet.models.trial import OPEN_TRIALS
from farm.fleet.selectors.nodes import AGAIN_AFTER
from farm.fleet.services.health import check_manages
from farm.fleet.states import NodeEventKind, NodeHealth, Trials, TrialState
from farm.rules.runtimes import providers

# how long a node may take to install and probe, and how long a trial may wait until the node begins it
MAX_TRIAL = timedelta(minutes=30)
MAX_WAIT = timedelta(hours=1)
# trials of one node that wait for its owner's answer
MAX_UNANSWERED = 20


def ask_for_trial(*, node: Node, provider: str, by: User) -> Trial:
    """Ask for a trial of a provider on a node; return the one that is open already where there is one, made pending
    where `by` manages the node.

    The trial is pending at once where the owner allows all trials or `by` manages the node; otherwise it waits for the
    owner. Raises Invalid for a provider that no node can try by itself, and NotAllowed for anybody who may not start
    runs on the node. Raises Conflict where the node cannot try providers or has proven this one. Unless `by` manages
    the node, it also does so where the owner allows no trials or the same one failed lately; and where too many wait.
    """
    entry = providers.find(provider)
    if entry is None or not providers.can_be_probed(entry):
        raise Invalid(f"{provider[:60]!r} cannot be tried by a node: its packages are not known.", code="provider")
    _check_may_ask(by, node)
    is_managed = Node.objects.managed_by(by).filter(pk=node.pk).exists()
    if node.trials_allowed == Trials.NEVER and not is_managed:
        raise Conflict(f"The owner of {node.name} lets it try no providers.", code="no_trials")
    _check_can_try(node, entry.name)
    if (opened := node.trials.filter(provider=entry.name, state__in=OPEN_TRIALS).first()) is not None:
        return allow_trial(trial=opened, by=by) if is_managed and opened.state == TrialState.ASKED else opened
    failed = node.trials.filter(provider=entry.name, state=TrialState.FAILED, ended_at__gt=timezone.now() - AGAIN_AFTER)
    if not is_managed and (latest := failed.first()) is not None:
        raise Conflict(latest.words, code="failed_lately", hint="Its owner can have it tried again at once.")
    if node.trials.filter(state=TrialState.ASKED).count() >= MAX_UNANSWERED:
        raise Conflict(
            f"{node.name} was asked for {MAX_UNANSWERED} trials that its owner has not answered.", code="too_many"
        )
    is_allowed = is_managed or node.trials_allowed == Trials.ALLOW
    state = TrialState.PENDING if is_allowed else TrialState.ASKED
    try:
        with transaction.atomic():
            trial = Trial.objects.create(
                node=node,
                provider=entry.name,
                state=state,
                asked_by=by,
                allowed_at=timezone.now() if is_allowed else None,
            )
            _log(trial, by=by)
    except IntegrityError:  # another request made the same trial at the same moment
        return node.trials.get(provider=entry.name, state__in=OPEN_TRIALS)
    return trial


def begin_trial(*, node: int, provider: str, by: User | None) -> Trial:
    """Return the open trial of a provider that a run waits for, made pending, or a new one; `node` is the node's id.

    That the node's owner allows all trials is not checked here.
    """
    trial, is_new = Trial.objects.get_or_create(
        node_id=node,
        provider=provider,
        state__in=OPEN_TRIALS,
        defaults={"state": TrialState.PENDING, "asked_by": by, "allowed_at": timezone.now()},
    )
    if is_new or trial.move(TrialState.PENDING, TrialState.ASKED, allowed_at=timezone.now()):
        _log(trial, by=by)
    return trial


def allow_trial(*, trial: Trial, by: User) -> Trial:
    """Let the node try the provider: make a trial that waits for the owner pending.

    Raises NotAllowed unless `by` manages the node, Conflict where it was answered.
    """
    return _answer_trial(trial, TrialState.PENDING, by, allowed_at=timezone.now())


def decline_trial(*, trial: Trial, by: User) -> Trial:
    """Decline a trial that waits for the owner or for the node, so that blocks waiting for it are refused.

    Raises NotAllowed unless `by` manages the node, and Conflict where it has ended.
    """
    return _answer_trial(trial, TrialState.DECLINED, by, ended_at=timezone.now())


def start_next_trial(node: Node) -> messages.Trial | None:
    """Return the message for the trial that was allowed first, and note that it begins.

    A trial that has begun and not ended is returned again. None where no trial is pending, while the node may take no
    block, and for an agent that is older than trials.
    """
    if not node.understands_trials or not node.may_take_blocks:
        return None
    trial = node.trials.filter(state=TrialState.PENDING).order_by("allowed_at", "pk").first()
    if trial is None:
        return None
    if trial.begun_at is None and trial.move(TrialState.PENDING, TrialState.PENDING, begun_at=timezone.now()):
        _log(trial)
    return messages.Trial(id=str(trial.pk), provider=providers.provider_of(trial.provider).short)


def store_trial_result(node: Node, tried: messages.Tried) -> None:
    """Store how a trial ended, as the node says; it succeeded only where the hello proves the provider too.

    A trial that is not this node's or not pending is passed over.
    """
    trial = node.trials.filter(pk=tried.id, state=TrialState.PENDING).first() if is_row_number(tried.id) else None
    if trial is None:
        return
    problem = replace_controls(tried.problem)
    if not problem and trial.provider not in node.providers:
        problem = "It ended without a word and without the provider."
    state = TrialState.FAILED if problem else TrialState.READY
    if trial.move(state, TrialState.PENDING, problem=problem, ended_at=timezone.now()):
        _log(trial)


def end_late_trials() -> int:
    """Fail trials that their node did not begin within MAX_WAIT or end within MAX_TRIAL; return how many.

    Trials that wait for their owner's answer have no limit.
    """
    now = timezone.now()
    late = Q(begun_at__lt=now - MAX_TRIAL) | Q(begun_at=None, allowed_at__lt=now - MAX_WAIT)
    rows = Trial.objects.filter(late, state=TrialState.PENDING).select_related("node")
    return sum(_fail_late_trial(trial) for trial in rows)


def _fail_late_trial(trial: Trial) -> bool:
    if trial.begun_at is None:
        problem = f"it did not come for the trial within {MAX_WAIT.seconds // 60} minutes. Start it, and ask again."
    else:
        problem = f"it did not end within {MAX_TRIAL.seconds // 60} minutes. See the node's log."
    moved = trial.move(TrialState.FAILED, TrialState.PENDING, problem=problem, ended_at=timezone.now())
    if moved:
        _log(trial)
    return moved


def _check_may_ask(by: User, node: Node) -> None:
    """Raises NotAllowed unless `by` may start runs in a team that the node measures for."""
    teams = Team.objects.writable_by(by).values("pk")
    lent = Lending.objects.in_force().filter(team__in=teams, node=node)
    if not teams.filter(pk=node.team_id).exists() and not lent.exists():
        raise NotAllowed(f"Only those who may start runs on {node.name} ask for trials there.")


def _check_can_try(node: Node, provider: str) -> None:
    if node.health in (NodeHealth.RETIRED, NodeHealth.PENDING) or node.is_browser:
        raise Conflict(f"{node.name} tries no providers: it is {'a browser' if node.is_browser else node.health}.")
    if not node.understands_trials:
        raise Conflict(f"The agent of {node.name} is older than trials: upgrade it.", code="old_agent")
    if provider in node.providers:
        raise Conflict(f"{node.name} has proven {providers.title(provider)} already.", code="proven")


def _answer_trial(trial: Trial, state: TrialState, by: User, **changes: object) -> Trial:
    check_manages(trial.node, by)
    with transaction.atomic():
        before = OPEN_TRIALS if state == TrialState.DECLINED else (TrialState.ASKED,)
        if not trial.move(state, *before, answered_by=by, **changes):
            raise Conflict(trial.words, code="answered")
        _log(trial, by=by)
    return trial


def _log(trial: Trial, *, by: User | None = None) -> None:
    trial.node.log(NodeEventKind.TRIAL, trial.words[:1000], actor=by, trial=trial.pk)
