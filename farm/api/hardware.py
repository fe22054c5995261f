"""A model across hardware: the best settings on every target, and which of them keep a latency and a loss."""

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.api.auth import person
from farm.registry import selectors
from farm.rules.presenting import hardware, hardware_words
from farm.rules.presenting.hardware import Limits, MeasuredSetting, Target
from farm.rules.presenting.lines import judge_outputs
from farm.rules.presenting.times import clock_title
from farm.runs.selectors.hardware import measured_across

router = Router(tags=["registry"])
MAX_MS = 1e7


class HardwareAsked(Schema):
    """What a setting has to keep, what is best, and how targets are put together."""

    budget_ms: float | None = Field(
        default=None, gt=0, le=MAX_MS, description="p50 of one inference, milliseconds; left out: any"
    )
    loss_percent: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="loss against FP32: points of top-1 or top-5, or per cent of a mean error; left out: any",
    )
    goal: Literal["latency", "items"] = Field(default="latency", description="best is the lowest p50, or most items/s")
    by: Literal["node", "tag"] = Field(
        default="node", description="a target is a node with a hardware tag, or a hardware tag over all nodes"
    )
    version: str = Field(
        default="newest",
        pattern=r"^(newest|all|[1-9][0-9]{0,8})$",
        description="the newest version that was measured, all of them, or one by its number in its model",
    )


class LossOut(Schema):
    percent: float = Field(description="against FP32: points of top-1 or top-5, or per cent of a mean error")
    worst_percent: float = Field(description="the worse end of its 95 % interval")
    basis: str = Field(description="labelled data (judged on them), or parity (FP32 that passes it loses nothing)")


class BestOut(Schema):
    """The best setting of a target."""

    run: int = Field(description="the run's number")
    cell: str = Field(description="the cell, as the run names it")
    node: str = Field(description="the node that measured it")
    setting: str = Field(description="runtime, provider, precision, batch and threads in words")
    runtime: str = Field(description="distribution and release")
    provider: str = Field(description="the execution provider, as ONNX Runtime names it")
    precision: str = Field(description="fp32, fp16, int8-dynamic, int8-qdq, int8-qoperator or int4")
    batch: int | None = Field(description="rows of one inference; null: the model has no batch")
    threads: int = Field(description="threads inside one operator")
    time: str = Field(description="what p50_ms and items_s are by: p50, or processor time where the machine was busy")
    p50_ms: float = Field(description="median latency of one inference, milliseconds")
    p50_ci_ms: tuple[float, float] | None = Field(description="its 95 % interval over launches; null: too few")
    items_s: float | None = Field(description="items a second, in batches of `batch`; null: not measured")
    parity: str = Field(
        description="pass (labelled data outrank parity) or not_measured; wrong outputs: it lost no more than was asked"
    )
    metric: str | None = Field(description="top1, top5 or mse; null: not judged on labelled data")
    accuracy: float | None = Field(description="a share, or a mean squared error; null: not judged")
    accuracy_ci: tuple[float, float] | None = Field(description="its 95 % interval; null: none")
    loss: LossOut | None = Field(description="what it lost against FP32; null: not known")
    peak_memory_bytes: int | None = Field(description="of the whole process; null: not measured")
    energy_mj: float | None = Field(description="millijoules an inference; null: no meter was read")
    measured_at: datetime | None = Field(description="when its block ended; null: not known")


class TargetOut(Schema):
    """One version on one target: different hardware, side by side, without a verdict between targets."""

    version: int = Field(description="the number of the model's version")
    nodes: list[str] = Field(description="the nodes of this target that measured it")
    tag: str = Field(description="the hardware tag that the provider runs on")
    machine: str = Field(description="processor or accelerator; empty: not known")
    settings: int = Field(description="how many settings were measured there")
    left_out: dict[str, int] = Field(
        description="settings that are never the best: wrong (outputs), elsewhere (ran on the CPU), untimed"
    )
    keeping: str = Field(
        description="whether the best setting keeps what was asked: kept, undecided (its interval reaches beyond), "
        "unknown (no loss was measured) or exceeded"
    )
    best: BestOut | None = Field(description="null: every setting was left out")


class HardwareOut(Schema):
    """The leaderboard. Its first target is the newest version's that keeps what was asked best."""

    sentence: str = Field(description="the answer for the newest version among the targets")
    left_out: str = Field(description="how many settings were measured and why some are never the best")
    note: str = Field(description="what may not be read from the figures")
    targets: list[TargetOut] = Field(description="newest version first, then what keeps the limits, then the best")


@router.get("/models/{int:model_id}/hardware", response=HardwareOut)
def across_hardware(request: HttpRequest, model_id: int, query: Query[HardwareAsked]) -> HardwareOut:
    """Where a model was measured: the best settings on every target, and which keep a latency and a loss."""
    user = person(request)
    measured = measured_across(user, selectors.model(user, model_id))
    limits = Limits(query.budget_ms, None if query.loss_percent is None else query.loss_percent / 100)
    every = hardware.find_targets(measured, by=query.by, goal=query.goal, limits=limits)
    number = int(query.version) if query.version.isdecimal() else None
    chosen = every if query.version == "all" else hardware.select_version(every, number)
    return HardwareOut(
        sentence=hardware_words.describe_targets(hardware.select_version(chosen), limits, query.goal),
        left_out=hardware_words.describe_left_out(chosen),
        note=hardware_words.explain_side_by_side(measured),
        targets=[_shape_target(place) for place in chosen],
    )


def _shape_target(target: Target) -> TargetOut:
    return TargetOut(
        version=target.version,
        nodes=list(target.nodes),
        tag=target.tag,
        machine=target.machine,
        settings=target.settings,
        left_out=dict(target.left_out.items()),
        keeping=target.limit_check,
        best=_shape_best(target.best) if target.best else None,
    )


def _shape_best(best: MeasuredSetting) -> BestOut:
    cell, judged = best.cell, best.cell.accuracy
    low, high = (judged.ci_low, judged.ci_high) if judged else (None, None)
    loss = hardware.find_loss(cell)
    return BestOut(
        run=best.run,
        cell=cell.id,
        node=best.node,
        setting=hardware_words.format_setting(best),
        runtime=str(cell.runtime),
        provider=cell.provider,
        precision=cell.precision,
        batch=cell.batch,
        threads=cell.threads,
        time=clock_title([best.is_processor]),
        p50_ms=cell.p50_ms or 0.0,
        p50_ci_ms=cell.p50_ci_ms,
        items_s=cell.throughput,
        parity=judge_outputs(cell),
        metric=judged.metric if judged and judged.value is not None else None,
        accuracy=judged.value if judged else None,
        accuracy_ci=None if low is None or high is None else (low, high),
        loss=LossOut(percent=100 * loss.value, worst_percent=100 * loss.worst, basis=loss.basis) if loss else None,
        peak_memory_bytes=cell.peak_memory_bytes,
        energy_mj=cell.energy_mj,
        measured_at=best.at,
    )
