"""Judges the arms of a block on labelled data: each variant once on each runtime and provider."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from farm.contract.base import digest_json
from farm.contract.blocks import BlockOrder
from farm.contract.evaluation import AccuracyReport, CustomJudge
from farm.contract.reasons import Reason, ReasonCode
from farm.contract.reports import CheckReport, Reply, Report
from farm.rules.quality.accuracy_metrics import METRICS
from worker.agent.installation.environment import JudgeFile, NodeEnvironment
from worker.agent.measurement.checks import describe_first_problem, make_runner_order
from worker.agent.measurement.orders import EvaluationPart, RunnerOrder
from worker.agent.measurement.prepared_arms import PreparedArm, prepare_arms
from worker.agent.measurement.runner_process import Launcher, make_garbled_reason

# the time limits of one process, and of all evaluations of a block, which must leave time for its rounds
EVALUATION_S = 60.0
ALL_S = 240.0
TOO_LATE = Reason(
    code=ReasonCode.TIMEOUT,
    text=f"The block's {ALL_S:.0f} s for labelled data were over before this cell: give fewer samples or variants.",
)
# further time for loading numpy, the runtime and the model, before EVALUATION_S begins
_START_S = 60.0
# session settings that do not change the outputs
_WITHOUT_EFFECT = {"threads", "inter_op_threads", "execution_mode", "spinning", "memory_pattern", "arena"}


def evaluate_arms(
    launcher: Launcher,
    arms: Sequence[PreparedArm],
    *,
    say: Callable[[PreparedArm, str], None],
    judge: JudgeFile | None = None,
) -> Iterator[AccuracyReport]:
    """Judge every arm that has labelled data, and yield its report.

    Arms that differ only in their workload, or in settings such as threads that do not change outputs, share one
    evaluation. `judge` replaces the metric of the recipe. Arms of other engines than ONNX Runtime get a report with a
    reason, and so do those with a metric that this node does not know, and those that remain after ALL_S seconds.
    """
    reports: dict[str, AccuracyReport] = {}
    ends_at = time.monotonic() + ALL_S
    for arm in arms:
        if arm.evaluation is None:
            continue
        key = _digest_evaluation(arm)
        if not arm.is_session:
            text = f"Labelled data are judged on ONNX Runtime alone: {arm.order.cell.runtime} has no accuracy here."
            reports[key] = _make_unjudged_report(arm, Reason(code=ReasonCode.NOT_SUPPORTED, text=text))
        if key not in reports:
            say(arm, "evaluating")
            is_late = time.monotonic() >= ends_at
            reports[key] = _make_unjudged_report(arm, TOO_LATE) if is_late else _evaluate_arm(launcher, arm, judge)
        yield reports[key].model_copy(update={"arm": arm.arm})


def evaluate_block(
    order: BlockOrder,
    *,
    report: Callable[[Report], Reply],
    environment: NodeEnvironment,
    is_cancelled: Callable[[], bool],
) -> None:
    """Judge the arms of a block on labelled data, without checks, traces or rounds.

    `report` is called with a CheckReport that has the reason for each arm that cannot be prepared, and then with an
    AccuracyReport for each arm with labelled data. Neither facts nor an EndReport are reported.
    """
    environment.work_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="judged-", dir=environment.work_dir.resolve()))
    launcher = Launcher(
        stage=environment.stage,
        timeout_s=order.runner_timeout_s,
        memory_bytes=order.memory_bytes,
        is_cancelled=is_cancelled,
    )

    def say(arm: PreparedArm, activity: str) -> None:
        environment.say(f"{activity}: {arm.description}")

    try:
        ready, refused = prepare_arms(order, environment=environment, folder=folder, is_cancelled=is_cancelled)
        for arm, reason in refused.items():
            report(CheckReport(arm=arm, reason=reason))
        with launcher:
            for accuracy in evaluate_arms(launcher, ready, say=say, judge=environment.judge):
                report(accuracy)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _digest_evaluation(arm: PreparedArm) -> str:
    """Digest what the outputs of an arm depend on: not the batch, the concurrency, or the threads."""
    cell = arm.order.cell
    session = cell.session.model_dump(mode="json", exclude=_WITHOUT_EFFECT)
    parts = [arm.order.bundle.digest, str(cell.runtime), cell.provider, cell.provider_options, session]
    return digest_json(parts)


def _evaluate_arm(launcher: Launcher, arm: PreparedArm, judge: JudgeFile | None) -> AccuracyReport:
    assert arm.order.evaluation is not None
    recipe, data = arm.order.evaluation.recipe, arm.order.evaluation.data
    accuracy = AccuracyReport(arm=arm.arm, measured_arm=arm.arm, recipe=recipe, data_sha256=data.sha256)
    part: EvaluationPart = {"data": str(arm.evaluation), "most_s": EVALUATION_S}
    if judge is not None:
        part["own"] = (str(_write_judge(judge, arm)), judge.file, judge.function)
        accuracy = accuracy.model_copy(update={"judge": _describe_judge(judge, {})})
    elif (entry := METRICS.get(recipe.metric)) is not None:
        part |= {"judge": entry.judge, "at_once": entry.at_once}
        part |= {"metric": recipe.metric, "output": recipe.output, "apply": recipe.apply, "threshold": recipe.threshold}
    else:
        text = f"This node knows no accuracy metric {recipe.metric!r}: install the package that brings it on the node."
        return _make_unjudged_report(arm, Reason(code=ReasonCode.NOT_SUPPORTED, text=text))
    order: RunnerOrder = {**make_runner_order(arm, "evaluation"), "evaluation": part}
    answer = launcher.launch(arm, order, work_dir=arm.scratch, timeout_s=EVALUATION_S + _START_S)
    accuracy = accuracy.model_copy(update={"wall_s": answer.wall_ms / 1000, "reason": answer.reason})
    if answer.reason is not None:
        return accuracy
    try:
        fields = {name: answer.reply.get(name) for name in ("n", "output", "samples")}
        if judge is not None:
            fields["judge"] = _describe_judge(judge, answer.reply)
        return AccuracyReport.model_validate({**dict(accuracy), **fields})
    except ValidationError as error:
        return accuracy.model_copy(update={"reason": make_garbled_reason(describe_first_problem(error))})


def _describe_judge(judge: JudgeFile, reply: Mapping[str, object]) -> CustomJudge:
    """Describe the user's judge, with the figure in the runner's `reply`, if there is one."""
    lower = reply.get("lower_is_better", False) if judge.lower_is_better is None else judge.lower_is_better
    facts = {"file": f"{judge.file}:{judge.function}", "sha256": hashlib.sha256(judge.content).hexdigest()}
    return CustomJudge.model_validate({**facts, "lower_is_better": lower, "value": reply.get("value")})


def _write_judge(judge: JudgeFile, arm: PreparedArm) -> Path:
    """Write the judge's file into the folder of the arm's data, which the runner may read, and return its path."""
    assert arm.evaluation is not None
    place = arm.evaluation.with_suffix(".judge.py")
    place.write_bytes(judge.content)
    return place


def _make_unjudged_report(arm: PreparedArm, reason: Reason) -> AccuracyReport:
    assert arm.order.evaluation is not None
    return AccuracyReport(arm=arm.arm, recipe=arm.order.evaluation.recipe, reason=reason)
