"""What a node is told to do: the order of one attempt at a block, from rows."""

from collections.abc import Iterable

from django.db.models import Prefetch, prefetch_related_objects

from farm.base.refusals import Conflict
from farm.contract.blocks import ArmOrder, BlockOrder
from farm.contract.cells import SINGLE, Bundle, FileRef
from farm.contract.evaluation import EvaluationOrder
from farm.contract.node import INT4, PROMPTS, SCENARIOS, TRACED_ROUNDS
from farm.registry.models import Artifact, ArtifactFile
from farm.registry.selectors import evaluation_order, prompts_ref
from farm.rules.cells import scenarios
from farm.rules.judging.block_verdicts import most_rounds
from farm.rules.quality.parity import preset_for
from farm.runs.models import Arm, Block
from farm.runs.selectors.divergences import questions_of
from farm.runs.selectors.evidence import UNMAKEABLE

RELATED = ("cell__variant__derived", "cell__preparation__inputs", "cell__preparation__reference")
# long, and not told to nodes
UNREAD = ("cell__variant__inspection", "cell__variant__history", "cell__variant__coverage")


def order_of(block: Block, *, attempt: int, understands: frozenset[str] = frozenset()) -> BlockOrder:
    """The order of an attempt: every arm that could be prepared, with the files it needs.

    `understands`: what the node said with its claim that it does. Raises Conflict when an input is missing after all,
    or where the node is too old for a scenario; the block is then not to be had.
    """
    plan, version = block.plan, block.run.version
    # a block that goes on has been judged on labelled data already
    evaluation = None if block.first_round else evaluation_order(version)
    makeable = block.arms.exclude(UNMAKEABLE).select_related(*RELATED).defer(*UNREAD)
    arms, asked = list(makeable.order_by("number")), questions_of(block)
    if asked:
        wanted = {number for one in asked for number in (one.arm, one.against)}
        arms = [arm for arm in arms if arm.number in wanted]
    derived = [arm.cell.variant.derived for arm in arms if arm.cell.variant is not None]
    _read_files([version.artifact, *(artifact for artifact in derived if artifact is not None)])
    source, prompts = version.artifact.bundle, prompts_ref(version.artifact)
    return BlockOrder(
        block=str(block.pk),
        attempt=attempt,
        budget=plan.budget,
        seed=(block.seed + attempt) % 2**31,
        max_rounds=most_rounds(block.max_rounds),
        first_round=block.first_round,
        fail_fast=block.run.fail_fast,
        runner_timeout_s=plan.runner_timeout_s,
        block_timeout_s=plan.block_timeout_s,
        promised_s=plan.promised_s(block.max_rounds - block.first_round),
        # a block that goes on has its curves already
        sustained_s=0.0 if block.first_round else plan.sustained_s,
        is_tracing_rounds=plan.is_tracing_rounds and TRACED_ROUNDS in understands,
        divergences=asked,
        arms=tuple(
            _as_understood(
                _arm_order(arm, source=source, evaluation=evaluation, prompts=prompts), understands
            ).model_copy(update={"tolerances": plan.tolerances})
            for arm in arms
        ),
    )


def _as_understood(order: ArmOrder, understands: frozenset[str]) -> ArmOrder:
    """The order of an arm as this node takes it: one that does not know scenarios is told by `sustained_s` to work on.

    Raises Conflict for what it does not know.
    """
    work = order.cell.workload
    if order.prompts is not None and PROMPTS not in understands:
        text = "The agent is older than prompts that are given: upgrade it; another node may take the block."
        raise Conflict(text, code="not_offered")
    if order.cell.recipe.precision == INT4 and INT4 not in understands:
        text = "The agent is older than 4-bit weights: upgrade it; another node may take the block."
        raise Conflict(text, code="not_offered")
    if work.scenario == SINGLE or SCENARIOS in understands:
        return order
    if scenarios.of(order.cell).kind != "sustained":
        text = f"The agent is older than the scenario {work.scenario!r}: upgrade it; another node may take the block."
        raise Conflict(text, code="not_offered")
    plain = order.cell.model_copy(update={"workload": work.model_copy(update={"scenario": SINGLE})})
    return order.model_copy(update={"cell": plain})


def _read_files(artifacts: Iterable[Artifact]) -> None:
    """Reads the files of all these artifacts with one query, which their bundles are made of."""
    files = ArtifactFile.objects.select_related("blob")
    prefetch_related_objects(list(artifacts), Prefetch("files", queryset=files))


def _arm_order(
    arm: Arm, *, source: Bundle, evaluation: EvaluationOrder | None = None, prompts: FileRef | None = None
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
        source=source,
        inputs=inputs,
        reference=cell.preparation.reference_ref,
        tolerance=preset_for(spec.recipe.precision).tolerance,
        evaluation=evaluation,
        prompts=prompts if scenarios.of(spec).generation.given else None,
    )
