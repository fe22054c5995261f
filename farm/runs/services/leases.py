"""Leases blocks: a node claims a block, gets an order and a token, and holds the block by heartbeats.

A claim is one conditional UPDATE. The attempt number fences off nodes that held the block before, and the token keeps
other nodes from reporting in place of the one that holds it.
"""

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Prefetch, prefetch_related_objects
from django.utils import timezone
from django.utils.crypto import salted_hmac

from farm.base.refusals import Conflict, NotAllowed
from farm.base.secrecy import hash_secret
from farm.contract.blocks import ArmOrder, BlockOrder, Lease
from farm.contract.cells import BOUND, SINGLE, Bundle, FileRef
from farm.contract.evaluation import EvaluationOrder
from farm.contract.node import (
    ACCURACIES,
    CALLS,
    INDEXES,
    INT4,
    MODELS,
    PROMPTS,
    SCENARIOS,
    TRACED_ROUNDS,
    HeartbeatReply,
)
from farm.contract.numbers import is_row_number
from farm.contract.reasons import Reason, ReasonCode
from farm.fleet.models import Node
from farm.fleet.services import clear_doing
from farm.registry.models import ArtifactFile
from farm.registry.selectors import describe_uploaded_numbers, index_wheels
from farm.rules.cells import scenarios
from farm.rules.planning.plans import max_rounds_to_order
from farm.rules.quality.parity import preset_for
from farm.rules.runtimes import distributions, indexes
from farm.runs import clocks
from farm.runs.models import Arm, Attempt, Block
from farm.runs.selectors.backlog import explain_refused_claim, may_have_model
from farm.runs.selectors.compared_versions import find_evaluation, map_prompts
from farm.runs.selectors.divergences import open_questions
from farm.runs.selectors.evidence import UNMAKEABLE
from farm.runs.selectors.queue_order import explain_not_next
from farm.runs.services.endings import fail_block, give_up_attempt
from farm.runs.services.locks import lock_block, mark_run
from farm.runs.states import AttemptState, BlockState

RELATED_TO_ARMS = ("cell__variant__derived", "cell__preparation__inputs", "cell__preparation__reference")
# long columns that no order needs
UNREAD_OF_ARMS = ("cell__variant__inspection", "cell__variant__history", "cell__variant__coverage")
TOKEN_PREFIX = "ofa_"
# extra time beyond a block's own limits, for installing runtimes and fetching files
LEASE_GRACE_S = 1800.0
# the metrics that an agent without the ability `accuracies` knows
FIRST_METRICS = ("top1", "top5", "mse")
# relations to load with a block, since its order needs them, and long columns that the order does not need
ORDERED = (*("run__team", "run__version__evaluation"), *("run__version__artifact", "run__version__artifact__prompts"))
UNREAD = ("run__matrix", "run__version__inspection")


def make_block_order(block: Block, *, attempt: int, understands: frozenset[str] = frozenset()) -> BlockOrder:
    """Make the order of an attempt: every arm that could be prepared, with the files that it needs.

    If questions where outputs diverge are open, the order holds these and only the arms that they name. `understands`
    holds the abilities of the node's agent. Raises Conflict if an input is not made yet, or if the agent lacks an
    ability that the block needs.
    """
    plan, versions = block.plan, block.versions
    if len(versions) > 1 and MODELS not in understands:
        text = "The agent is older than blocks of several models: upgrade it; another node may take the block."
        raise Conflict(text, code="not_offered")

    # the arms, or only those that the questions name
    makeable = block.arms.exclude(UNMAKEABLE).select_related(*RELATED_TO_ARMS).defer(*UNREAD_OF_ARMS)
    arms, questions = list(makeable.order_by("number")), open_questions(block)
    if questions:
        arm_numbers = {number for comparison in questions for number in (comparison.arm, comparison.against)}
        arms = [arm for arm in arms if arm.number in arm_numbers]

    # the files of all bundles, in one query
    derived = [arm.cell.variant.derived for arm in arms if arm.cell.variant is not None]
    artifacts = [version.artifact for version in versions]
    all_artifacts = [*artifacts, *(artifact for artifact in derived if artifact is not None)]
    prefetch_related_objects(all_artifacts, Prefetch("files", queryset=ArtifactFile.objects.select_related("blob")))
    bundles = [artifact.bundle for artifact in artifacts]

    # what each arm needs from the versions; a continued block has been judged on labelled data already
    sources, prompts = {bundle.digest: bundle for bundle in bundles}, map_prompts(versions)
    labelled_data = None if block.first_round else find_evaluation(versions)
    evaluation = labelled_data.order if labelled_data is not None else None
    number_kinds = describe_uploaded_numbers(versions)
    uploaded = {bundle.digest: number_kinds[version.pk] for bundle, version in zip(bundles, versions, strict=True)}
    arm_orders = []
    for arm in arms:
        order = _make_arm_order(arm, sources=sources, uploaded=uploaded, evaluation=evaluation, prompts=prompts)
        arm_orders.append(_fit_to_agent(order, understands).model_copy(update={"tolerances": plan.tolerances}))

    return BlockOrder(
        block=str(block.pk),
        attempt=attempt,
        budget=plan.budget,
        seed=(block.seed + attempt) % 2**31,
        max_rounds=max_rounds_to_order(block.max_rounds),
        first_round=block.first_round,
        fail_fast=block.run.fail_fast,
        runner_timeout_s=plan.runner_timeout_s,
        block_timeout_s=plan.block_timeout_s,
        promised_s=plan.max_duration_s(block.max_rounds - block.first_round),
        # a continued block has its curves already
        sustained_s=0.0 if block.first_round else plan.sustained_s,
        is_tracing_rounds=plan.is_tracing_rounds and TRACED_ROUNDS in understands,
        divergences=questions,
        arms=tuple(arm_orders),
    )


def _fit_to_agent(order: ArmOrder, understands: frozenset[str]) -> ArmOrder:
    """Return the order of an arm in a form that the agent can carry out.

    An agent that knows no scenarios gets the plain workload in place of a sustained one. Raises Conflict if the agent
    lacks an ability that the arm needs.
    """
    work = order.cell.workload
    metric = order.evaluation.recipe.metric if order.evaluation is not None else "top1"
    # by ability: the feature that needs it, and whether the arm uses that
    needs = {
        PROMPTS: ("prompts that are given", order.prompts is not None),
        INT4: ("4-bit weights", order.cell.recipe.precision == INT4),
        CALLS: (f"`call: {order.cell.session.call}`", order.cell.session.call != BOUND),
        INDEXES: (f"{order.cell.runtime}, which is of an index of this farm", bool(order.wheels)),
        ACCURACIES: (f"the accuracy metric {metric!r}", metric not in FIRST_METRICS),
        SCENARIOS: (
            f"the scenario {work.scenario!r}",
            work.scenario != SINGLE and not scenarios.of_cell(order.cell).sustained_s,
        ),
    }
    for capability, (feature, is_needed) in needs.items():
        if is_needed and capability not in understands:
            text = f"The agent is older than {feature}: upgrade it; another node may take the block."
            raise Conflict(text, code="not_offered")
    if work.scenario == SINGLE or SCENARIOS in understands:
        return order
    cell = order.cell.model_copy(update={"workload": work.model_copy(update={"scenario": SINGLE})})
    return order.model_copy(update={"cell": cell})


def _make_arm_order(
    arm: Arm,
    *,
    sources: Mapping[str, Bundle],
    uploaded: Mapping[str, str],
    evaluation: EvaluationOrder | None,
    prompts: Mapping[str, FileRef],
) -> ArmOrder:
    cell = arm.cell
    spec = cell.spec
    derived = cell.variant.derived if cell.variant else None
    inputs = cell.preparation.inputs_ref if cell.preparation else None
    if derived is None or inputs is None or cell.preparation is None:
        raise Conflict(f"The inputs of {cell.name} are not there yet; the block is rung again.", code="not_ready")
    return ArmOrder(
        arm=arm.number,
        cell=spec,
        bundle=derived.bundle,
        source=sources[spec.artifact_sha256],
        inputs=inputs,
        reference=cell.preparation.reference_ref,
        tolerance=preset_for(spec.recipe.precision, uploaded[spec.artifact_sha256]).tolerance,
        evaluation=evaluation,
        prompts=prompts.get(scenarios.of_cell(spec).prompts_sha256 or ""),
        wheels=index_wheels(spec.runtime),
    )


class Claim(NamedTuple):
    """An attempt whose token was verified, and its block. `require_current` raises Conflict if the attempt is over."""

    block: Block
    attempt: Attempt

    @property
    def is_current(self) -> bool:
        """True while the attempt holds its block."""
        block, attempt = self.block, self.attempt
        return (
            attempt.state == AttemptState.LEASED
            and block.state == BlockState.LEASED
            and block.attempt == attempt.number
            and block.node_id == attempt.node_id
        )

    def require_current(self) -> None:
        if not self.is_current:
            raise Conflict(f"Attempt {self.attempt.number} at block {self.block.pk} is over.", code="stale")


def claim_block(*, node: Node, block_id: str, attempt: int, understands: frozenset[str] = frozenset()) -> Lease:
    """Lease the block to the node, if it is queued under this attempt number and the node may take it.

    A node that holds the block already gets the same token again. Raises Conflict in every other case, and also for an
    agent that is too old or a package that is not allowed; that package fails the block. On Conflict the node drops
    the message.
    """
    ordered = Block.objects.select_related(*ORDERED).defer(*UNREAD)
    # not sorted, since the default order would join the run
    block = ordered.order_by().filter(pk=block_id).first() if is_row_number(block_id) else None
    if block is None:
        raise _make_stale_error(block_id, attempt)
    is_held = block.state == BlockState.LEASED and block.attempt == attempt and block.node_id == node.pk
    is_repeated = is_held and may_have_model(node, block)
    refusal = "" if is_repeated else explain_refused_claim(node, block, attempt) or explain_not_next(node, block)
    if refusal:
        raise Conflict(refusal, code="not_offered")
    # the order is made before the lease, so that an order that cannot be made does not hold the block
    order = make_block_order(block, attempt=attempt, understands=understands)
    if not is_repeated:
        _refuse_packages(block, order)
        _create_attempt(node, block, attempt)
    return Lease(order=order, token=_make_token(node, block, attempt), lease_s=settings.LEASE_S)


def heartbeat(*, node: Node, block_id: str, attempt: int, token: str, doing: str = "") -> HeartbeatReply:
    """Extend the lease and store what the node says it does; if that is new, the run is marked as changed.

    Raises Conflict if the node no longer holds the block, so that it kills its runner. A block that was held for longer
    than `max_lease_s` is taken back first, which raises Conflict too. Raises NotAllowed for a wrong token.
    """
    claim = find_claim(node=node, block_id=block_id, attempt=attempt, token=token)
    held_s = clocks.now().since(claim.attempt.began_at_s, claim.attempt.began_boot)
    if held_s is None:
        held_s = (timezone.now() - claim.attempt.claimed_at).total_seconds()
    # the plan is parsed only if the attempt is older than the smallest possible limit
    if claim.is_current and held_s > LEASE_GRACE_S and held_s > max_lease_s(claim.block):
        raise _take_back(claim)
    if not claim.block.extend(node=node, attempt=attempt, lease_s=settings.LEASE_S, doing=doing):
        raise _make_stale_error(block_id, attempt)
    if claim.block.doing != doing:
        mark_run(claim.block.run_id)
    return HeartbeatReply(lease_s=settings.LEASE_S)


def max_lease_s(block: Block) -> float:
    """Return for how many seconds an attempt may hold the block, however many heartbeats it sends.

    A working agent stops by itself long before that.
    """
    plan = block.plan
    return plan.block_timeout_s + plan.runner_timeout_s + plan.sustained_s + LEASE_GRACE_S


def find_claim(*, node: Node, block_id: str, attempt: int, token: str) -> Claim:
    """Find an attempt of this node by its block and number, and verify its token. The attempt may be over.

    Raises Conflict if the node has no such attempt, and NotAllowed for a wrong token.
    """
    attempts = Attempt.objects.select_related("block").order_by().filter(number=attempt, node=node)
    row = attempts.filter(block=int(block_id)).first() if is_row_number(block_id) else None
    if row is None:
        raise _make_stale_error(block_id, attempt)
    if not hmac.compare_digest(row.token_digest, hash_secret(token)):
        raise NotAllowed("The attempt token does not belong to this attempt.", code="bad_token")
    row.node = node
    return Claim(row.block, row)


def find_claim_by_token(*, node: Node, token: str) -> Claim:
    """Find an attempt of this node by its token alone. The attempt may be over.

    Raises NotAllowed if no attempt of this node has the token, or the node no longer measures for the team.
    """
    related = ("block__run__team", "block__run__version")
    attempts = Attempt.objects.select_related(*related).defer("block__run__matrix")
    row = attempts.filter(token_digest=hash_secret(token), node=node).first()
    if row is None:
        raise NotAllowed("The attempt token does not belong to an attempt of this node.", code="bad_token")
    if not may_have_model(node, row.block):
        name = row.block.run.team.name
        raise NotAllowed(f"{node.name} no longer measures for team “{name}”.", code="not_served")
    return Claim(row.block, row)


def _refuse_packages(block: Block, order: BlockOrder) -> None:
    """Fail a block that asks for a package which is not allowed, and then raise Conflict.

    Planning refuses such cells, but a package may be disallowed after that.
    """
    for arm in order.arms:
        runtime = arm.cell.runtime
        refusal = distributions.refusal(runtime, allowed=settings.ALLOWED_PACKAGES)
        version, index = indexes.split_index(runtime.version)
        if not refusal and index and not arm.wheels:
            refusal = f"{runtime.distribution} {version} is not on the index {index} of this farm."
        if refusal:
            reason = Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=refusal)
            with transaction.atomic():
                current = lock_block(block.pk, run_id=block.run_id)
                # another claim may have leased it since: then its attempt goes on
                if (current.state, current.attempt) == (BlockState.QUEUED, block.attempt):
                    fail_block(current, reason)
            raise Conflict(f"Block {block.pk} is not given to any node: {refusal}", code="not_offered")


def _take_back(claim: Claim) -> Conflict:
    """Take the block from a node that held it for too long; return the error to raise."""
    block, attempt = claim.block, claim.attempt
    name = attempt.node.name if attempt.node else "The node"
    text = f"{name} has held block {block.pk} for longer than its limit of {max_lease_s(block):.0f} s."
    with transaction.atomic():
        current = lock_block(block.pk, run_id=block.run_id)
        if Claim(current, Attempt.objects.get(pk=attempt.pk)).is_current:
            give_up_attempt(current, attempt, Reason(code=ReasonCode.TIMEOUT, text=text), state=AttemptState.LOST)
    return Conflict(text, code="stale")


def _create_attempt(node: Node, block: Block, attempt: int) -> None:
    """Lease the block and write the attempt's row, together. Raises Conflict if another claim was faster."""
    moment = clocks.now()
    with transaction.atomic():
        # this locks the run; everywhere, a run is locked before its blocks
        mark_run(block.run_id, is_begun=True)
        clear_doing(node)
        if not _lease_or_refuse(node, block, attempt):
            raise _make_stale_error(str(block.pk), attempt)
        Attempt.objects.create(
            block=block,
            number=attempt,
            node=node,
            first_round=block.first_round,
            token_digest=hash_secret(_make_token(node, block, attempt)),
            began_at_s=moment.seconds,
            began_boot=moment.boot,
        )


def _lease_or_refuse(node: Node, block: Block, attempt: int) -> bool:
    try:
        return block.lease(node=node, attempt=attempt, lease_s=settings.LEASE_S)
    except IntegrityError as problem:
        # the unique index on the device refused the lease: another claim on this machine was faster
        raise Conflict(f"{node.name} is measuring another block; it takes one at a time.", code="busy") from problem


def _make_token(node: Node, block: Block, attempt: int) -> str:
    # only the digest is stored, so the token is derived from the claim: a repeated claim gets the same one
    mac = salted_hmac("farm.runs.attempt", f"{node.pk}:{block.pk}:{attempt}", algorithm="sha256")
    return TOKEN_PREFIX + mac.hexdigest()


def _make_stale_error(block_id: str, attempt: int) -> Conflict:
    return Conflict(f"Attempt {attempt} at block {block_id} does not belong to this node.", code="stale")
