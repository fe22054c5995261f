"""Changes a node's health and settings, for its owner and for the farm itself.

Changes of health and of settings are written to the node's log and to the audit log, with the person who made them, if
one did.
"""

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from farm.accounts.models import User
from farm.accounts.services import record
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.node import NodeSettings, SelfTest, Tag
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.texts import strip_pydantic_prefix
from farm.fleet.models import Node
from farm.fleet.states import NodeEventKind, NodeHealth, NodeState, Trials
from farm.rules.planning.hours import is_time_zone

# a self-test fails if it takes this many times as long as the first one; a busy minute slows it down less
LATENCY_BAND = 3.0
# a node is quarantined after this many blocks in a row that failed by its own fault
QUARANTINE_AFTER = 3
# reasons that blame the node and not the cell
NODE_FAULTS = (ReasonCode.NODE_LOST, ReasonCode.INTERNAL, ReasonCode.ARTIFACT_UNAVAILABLE)
WORKING = (NodeHealth.ACTIVE, NodeHealth.DRAINING)
_TAG: TypeAdapter[str] = TypeAdapter(Tag)


def store_self_test(*, node: Node, test: SelfTest | None) -> None:
    """Store the newest self-test; one that failed, or took over LATENCY_BAND times the first, quarantines the node.

    The first that passes sets the time that later ones are compared with, unless the node is emulated. None changes
    nothing.
    """
    if test is None:
        return
    node.self_test_json = test.model_dump(mode="json")
    if node.self_test_ms is None and test.passed and not node.is_emulated:
        node.self_test_ms = test.p50_ms
    node.save(update_fields=["self_test_json", "self_test_ms"])
    problem = explain_failed_self_test(test, first_ms=node.self_test_ms)
    if problem:
        quarantine(node=node, reason=problem)


def explain_failed_self_test(test: SelfTest, *, first_ms: float | None) -> str:
    """Say why a node with this self-test may not work; empty where it may.

    `first_ms` is the time of its first one; with None, times are not compared.
    """
    if not test.passed:
        return f"Its self-test failed: {test.sentence}"[:500]
    if first_ms is None or test.p50_ms is None or test.p50_ms <= LATENCY_BAND * first_ms:
        return ""
    return (
        f"Its self-test takes {test.p50_ms:.3g} ms, {test.p50_ms / first_ms:.1f} times as long as at first "
        f"({first_ms:.3g} ms): see what else runs on it and how hot it is, or resume it to take this as its new pace."
    )


def explain_missing_owner(node: Node) -> str:
    """Say why a node gets no blocks if its owner may no longer start runs in its team.

    It does not check whether the owner may.
    """
    if node.owner is None:
        return f"The owner of {node.name} was deleted. Retire the node and let its machine join again."
    return (
        f"Its owner {node.owner.username} left team {node.team.name}, may only look there, or was deactivated: "
        f"{node.name} gets none of the team's models."
    )


def check_owner_may_write(node: Node) -> None:
    """Raises Conflict for a node whose owner may not start runs in its team any more."""
    if not Node.objects.with_writing_owner().filter(pk=node.pk).exists():
        raise Conflict(
            explain_missing_owner(node), code="owner_left", hint="Make the owner a member of the team first."
        )


def drain(*, node: Node, by: User) -> Node:
    """Let an active node finish its block and take no other until it is resumed.

    Raises NotAllowed for anybody who does not manage the node, and Conflict for another health.
    """
    return _change_health(node, by, NodeHealth.DRAINING, NodeEventKind.DRAINING, verb="node drained")


def resume(*, node: Node, by: User) -> Node:
    """Make a draining or quarantined node active again, with no failures counted; its next self-test that passes
    becomes its new first one.

    Raises NotAllowed for anybody who does not manage the node, and Conflict for a node of another health or whose owner
    may not start runs in its team.
    """
    check_manages(node, by)
    if node.health == NodeHealth.PENDING:
        raise Conflict(f"{node.name} is pending; approve it instead.")
    check_owner_may_write(node)
    with transaction.atomic():
        # the next self-test sets the time that later ones are compared with
        Node.objects.filter(pk=node.pk).update(failures=0, self_test_ms=None)
        node.self_test_ms = None
        return _change_health(node, by, NodeHealth.ACTIVE, NodeEventKind.RESUMED, verb="node resumed")


def revoke(*, node: Node, by: User, reason: str = "") -> Node:
    """Retire a node for good: revoke its secrets and mark it offline; its row stays.

    Raises NotAllowed for anybody who does not manage the node, and Conflict where it is retired already.
    """
    with transaction.atomic():
        _change_health(node, by, NodeHealth.RETIRED, NodeEventKind.RETIRED, verb="node revoked", reason=reason)
        node.secrets.filter(revoked_at=None).update(revoked_at=timezone.now())
        node.change_state(NodeState.OFFLINE)
    return node


def quarantine(*, node: Node, reason: str) -> bool:
    """Quarantine a node until a person resumes it; return False where it was neither active nor draining."""
    with transaction.atomic():
        changed = node.change_health(NodeHealth.QUARANTINED, NodeEventKind.QUARANTINED, reason=reason)
        if changed:
            record(verb="node quarantined", subject=node.name, team=node.team, facts={"reason": reason})
    return changed


def quarantine_nodes_without_owner() -> int:
    """Quarantine active and draining nodes whose owner may not start runs in their team any more; return how many.

    They stay quarantined until somebody resumes them, even where the owner comes back.
    """
    orphans = Node.objects.filter(health__in=WORKING).exclude(pk__in=Node.objects.with_writing_owner().values("pk"))
    rows = orphans.select_related("owner", "team").defer("facts_json", "log_tail")
    return sum(quarantine(node=node, reason=explain_missing_owner(node)) for node in rows)


def count_block_outcome(*, node: Node, reason: Reason | None) -> None:
    """Count blocks in a row that failed by the node's fault; too many quarantine it.

    `reason` says why the block failed; None is a block that succeeded, which sets the count back to 0. A reason that is
    not the node's fault changes nothing.
    """
    if reason is None:
        if node.failures:
            Node.objects.filter(pk=node.pk).update(failures=0)
        return
    if reason.code not in NODE_FAULTS:
        return
    Node.objects.filter(pk=node.pk).update(failures=F("failures") + 1)
    node.refresh_from_db(fields=["failures"])
    if node.failures >= QUARANTINE_AFTER:
        quarantine(node=node, reason=f"{node.failures} blocks in a row failed on it; the last: {reason.text}"[:500])


def change_settings(
    *, node: Node, by: User, tags: list[str] | None = None, trials: str | None = None, **settings: object
) -> Node:
    """Change the owner's tags and limits of a node, where `settings` are fields of NodeSettings.

    The node's log says what changed, also where nothing did, which the audit log leaves out. Fields that are not given
    stay, and `tags`, sorted, take the place of all that the owner gave.

    `trials` says whether the node tries providers that others ask for: ask, allow or never. None leaves tags and
    trials as they are. Raises NotAllowed for anybody who does not manage the node, Conflict for a retired node, and
    Invalid for a value that is malformed or out of range.
    """
    check_manages(node, by)
    if node.health == NodeHealth.RETIRED:
        raise Conflict(f"{node.name} is retired: it accepts no blocks, whatever its limits.")
    checked = _check_settings(node, settings)
    if trials not in (None, *Trials.values):
        raise Invalid(f"{str(trials)[:20]!r} says nothing of trials: ask, allow or never.", code="trials")
    before, tags_before, trials_before = node.settings.model_dump(), list(node.owner_tags), node.trials_allowed
    node.trials_allowed = Trials(trials or trials_before)
    node.settings_json = checked.model_dump(mode="json", exclude_defaults=True)
    if tags is not None:
        node.owner_tags = _normalise_tags(tags)
    with transaction.atomic():
        node.save(update_fields=["settings_json", "owner_tags", "trials_allowed"])
        names = {"is_paused": "paused" if checked.is_paused else "no longer paused"}
        changed = [names.get(name, name.replace("_", " ")) for name, is_now in checked if before[name] != is_now]
        changed += ["tags"] if node.owner_tags != tags_before else []
        changed += ["trials"] if node.trials_allowed != trials_before else []
        text = f"Settings of {node.name} were changed{': ' if changed else ''}{', '.join(changed)}."
        node.log(NodeEventKind.SETTINGS_CHANGED, text, actor=by, **settings)
        if changed:
            facts = {"changed": changed}
            record(verb="node settings changed", subject=node.name, actor=by, team=node.team, facts=facts)
    return node


def _check_settings(node: Node, settings: dict[str, object]) -> NodeSettings:
    """Return the node's settings with these fields changed. Raises Invalid for a wrong value."""
    try:
        checked = NodeSettings.model_validate({**node.settings_json, **settings})
    except ValidationError as problem:
        first = problem.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if field == "hours":
            raise Invalid(
                f"“{str(first['input'])[:20]}” are not hours of a day.",
                code="hours",
                hint="Write them like 20:00-06:00.",
            ) from problem
        raise Invalid(
            f"The setting {field} of {node.name} is out of range: {strip_pydantic_prefix(first['msg'])}.",
            code=field or "invalid",
        ) from problem
    if not is_time_zone(checked.timezone):
        raise Invalid(
            f"“{checked.timezone}” is not a known time zone.", code="timezone", hint="Write it like Europe/Vienna."
        )
    return checked


def _normalise_tags(tags: list[str]) -> list[str]:
    for tag in tags:
        try:
            _TAG.validate_python(tag)
        except ValidationError:
            raise Invalid(
                f"“{tag[:60]}” is not a valid tag; use lower-case letters, digits, dot, dash and underscore.",
                code="bad_tag",
            ) from None
    return sorted(set(tags))


def _change_health(
    node: Node, by: User, health: NodeHealth, kind: NodeEventKind, *, verb: str, reason: str = ""
) -> Node:
    check_manages(node, by)
    with transaction.atomic():
        if not node.change_health(health, kind, reason=reason, actor=by):
            if node.health == health:
                raise Conflict(f"{node.name} is {health} already.")
            raise Conflict(f"{node.name} is {node.health} and cannot become {health}.")
        record(verb=verb, subject=node.name, actor=by, team=node.team, facts={"reason": reason})
    return node


def check_manages(node: Node, user: User) -> None:
    """Raises NotAllowed unless the user owns the node or manages its team."""
    if not Node.objects.managed_by(user).filter(pk=node.pk).exists():
        raise NotAllowed(f"Only the owner of {node.name} or an admin of its team may do that.")
