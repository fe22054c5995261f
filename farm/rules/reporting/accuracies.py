"""Task accuracy in a bench document: each cell's own, and what it lost against the FP32 cell of its runtime; across
documents also against earlier versions of the model. Pure."""

from collections.abc import Iterable, Sequence
from math import hypot

from farm.base.grouping import group_by
from farm.contract import document_cells as doc_cells
from farm.contract.evaluation import AccuracyReport, EvaluationRecipe
from farm.rules.presenting.lines import is_loss_shown
from farm.rules.quality import accuracy, accuracy_metrics, evaluation

CPU = "CPUExecutionProvider"


def make_accuracy(report: AccuracyReport, *, measured_by: str | None = None) -> doc_cells.Accuracy:
    """Return a cell's accuracy with its interval, or with the reason why it has none.

    `measured_by` is the id of another cell that ran in its place. Raises SamplesProblem where the report's samples
    cannot be unpacked.
    """
    recipe = report.recipe
    entry = accuracy_metrics.METRICS.get(recipe.metric)
    judge = report.judge
    known = doc_cells.Accuracy(
        metric=recipe.metric,
        recipe=evaluation.format_recipe(recipe) if judge is None else judge.file,
        output=report.output,
        higher_is_better=not judge.lower_is_better if judge else entry is None or entry.higher_is_better,
        judge_sha256=judge and judge.sha256,
        n=report.n,
        data_sha256=report.data_sha256,
        reason=report.reason,
        measured_by=measured_by,
    )
    if report.reason is not None:
        return known.model_copy(update={"text": report.reason.text})
    if judge is not None and judge.value is not None:
        stated = known.model_copy(update={"value": judge.value})
    else:
        judged = evaluation.unpack_samples(report)
        found = accuracy.share_of_right(judged) if judged.dtype.kind == "b" else accuracy.mean_error(judged)
        figures = {"value": found.value, "ci_low": found.ci_low, "ci_high": found.ci_high}
        stated = known.model_copy(update={**figures, "samples": report.samples})
    return stated.model_copy(update={"text": accuracy_metrics.metric_of(stated).describe(stated)})


def compare_with_fp32(cells: Sequence[doc_cells.Cell], *, keep_samples: bool = False) -> list[doc_cells.Cell]:
    """Return the cells with the difference of each to its FP32 cell, sample by sample.

    Packed samples are then removed, unless `keep_samples`.
    """
    judged = [cell for cell in cells if cell.accuracy is not None and cell.accuracy.samples]
    return [_paired(cell, judged, keep_samples=keep_samples) for cell in cells]


def compare_across_runs(cells: Sequence[doc_cells.Cell]) -> list[doc_cells.Cell]:
    """Compare the cells of several runs with their FP32 cells, which works because samples are the same on every
    machine."""
    found = list(cells)
    for numbers in group_by(range(len(cells)), lambda at: (cells[at].model_sha256, cells[at].runtime)).values():
        for number, cell in zip(numbers, compare_with_fp32([cells[number] for number in numbers]), strict=True):
            found[number] = cell
    return found


def compare_versions(cells: Iterable[doc_cells.Cell], before: Sequence[doc_cells.Accuracy]) -> list[doc_cells.Cell]:
    """Return a version's cells; a loss shown against an earlier version replaces the difference to FP32."""
    return [
        cell
        if cell.accuracy is None
        else cell.model_copy(update={"accuracy": _compare_with_earlier(cell.accuracy, before)})
        for cell in cells
    ]


def drop_lossy(versions: Iterable[doc_cells.Accuracy]) -> list[doc_cells.Accuracy]:
    """Return the versions, the newest first, that show no loss against one before.

    `versions` are ordered from the oldest.
    """
    right: list[doc_cells.Accuracy] = []
    for own in versions:
        if not is_loss_shown(_compare_with_earlier(own, right)):
            right.insert(0, own)
    return right


def _compare_with_earlier(own: doc_cells.Accuracy, before: Sequence[doc_cells.Accuracy]) -> doc_cells.Accuracy:
    """Compare with an earlier version, whose samples are not paired: the interval is of the squares of both
    (Newcombe's method 10 without correlation)."""
    old = next((old for old in before if _data(old) == _data(own)), None)
    ends = None if old is None else (old.value, old.ci_low, old.ci_high, own.value, own.ci_low, own.ci_high)
    if ends is None or None in ends:
        return own
    was, was_low, was_high, value, low, high = (end or 0.0 for end in ends)
    change = value - was
    if is_loss_shown(own) and abs(own.difference or 0.0) > abs(change) - 1e-9:
        # paired sample by sample, which is the better interval
        return own
    told = own.model_copy(
        update={
            "difference": change,
            "difference_low": change - hypot(value - low, was_high - was),
            "difference_high": change + hypot(high - value, was - was_low),
            "p": None,
            "only_baseline": None,
            "only_this": None,
        }
    )
    if not is_loss_shown(told):
        return own
    entry = accuracy_metrics.metric_of(told)
    return told.model_copy(
        update={"text": f"{entry.describe(told)} An earlier version on the same data: {entry.format_loss(told)}."}
    )


def find_baseline(
    cell: doc_cells.Cell, own: doc_cells.Accuracy, judged: Sequence[doc_cells.Cell]
) -> doc_cells.Cell | None:
    """Return the FP32 cell of the same model and runtime that a cell is compared with; None for such a cell itself.

    A cell of another model than the document's first is compared with the same cell of the first. Of several FP32
    cells, the closest is taken: on the same provider, of the model as it was uploaded, as much optimised. An FP32 cell
    has a baseline only when it is something else than the uploaded model on the CPU provider.
    """
    if cell.model_sha256 != judged[0].model_sha256:
        return next((other for other in judged if _is_other_model(other, cell, judged[0].model_sha256)), None)
    is_plain = cell.precision == "fp32"
    others = [
        other
        for other in judged
        if other.accuracy is not None
        and (other.precision, other.model_sha256, other.runtime, other.twin_of)
        == ("fp32", cell.model_sha256, cell.runtime, None)
        and _data(other.accuracy) == _data(own)
        and _variant(other) != _variant(cell)
        and (not is_plain or (other.provider, other.recipe, other.optimization) == (CPU, "", "all"))
    ]
    return min(others, key=lambda other: _distance(other, cell), default=None)


def _is_other_model(other: doc_cells.Cell, cell: doc_cells.Cell, model_sha256: str) -> bool:
    same = (other.model_sha256, other.runtime, other.twin_of) == (model_sha256, cell.runtime, None)
    known = other.accuracy is not None and cell.accuracy is not None and _data(other.accuracy) == _data(cell.accuracy)
    return (
        same
        and known
        and _variant(other) == _variant(cell)
        and (other.batch, other.threads) == (cell.batch, cell.threads)
    )


def _data(judged: doc_cells.Accuracy) -> tuple[object, ...]:
    return judged.recipe, judged.output, judged.data_sha256, judged.judge_sha256, judged.n


def _variant(cell: doc_cells.Cell) -> tuple[object, ...]:
    options = tuple(sorted(cell.provider_options.items()))
    return cell.precision, cell.recipe, cell.provider, options, cell.optimization


def _distance(other: doc_cells.Cell, cell: doc_cells.Cell) -> tuple[object, ...]:
    return (
        other.provider != cell.provider,
        other.provider != CPU,
        other.recipe != "",
        other.optimization != cell.optimization,
        other.block != cell.block,
        (other.batch, other.threads) != (cell.batch, cell.threads),
    )


def _paired(cell: doc_cells.Cell, judged: Sequence[doc_cells.Cell], *, keep_samples: bool) -> doc_cells.Cell:
    own = cell.accuracy
    if own is None:
        return cell
    if own.samples:
        own = _compare_with_baseline(cell, own, find_baseline(cell, own, judged))
    if not keep_samples:
        own = own.model_copy(update={"samples": ""})
    return cell.model_copy(update={"accuracy": own})


def _compare_with_baseline(
    cell: doc_cells.Cell, own: doc_cells.Accuracy, baseline: doc_cells.Cell | None
) -> doc_cells.Accuracy:
    if baseline is None or baseline.accuracy is None:
        return own
    old, new = _samples(baseline.accuracy), _samples(own)
    if own.n < 2 and new.dtype.kind != "b":
        return own
    found = accuracy.compare_shares(old, new) if new.dtype.kind == "b" else accuracy.compare_errors(old, new)
    told = own.model_copy(
        update={
            "baseline": baseline.id,
            "difference": found.value,
            "difference_low": found.ci_low,
            "difference_high": found.ci_high,
            "p": found.p,
            "only_baseline": found.only_old,
            "only_this": found.only_new,
        }
    )
    against = baseline.model if baseline.model_sha256 != cell.model_sha256 else baseline.uploaded
    differs = _difference_sentence(told, found.change, against=against or "FP32")
    return told.model_copy(update={"text": f"{accuracy_metrics.metric_of(told).describe(told)} {differs}"})


def _samples(judged: doc_cells.Accuracy) -> evaluation.Judged:
    recipe = EvaluationRecipe(metric=judged.metric)
    return evaluation.unpack_samples(AccuracyReport(arm=0, recipe=recipe, n=judged.n, samples=judged.samples))


def _difference_sentence(judged: doc_cells.Accuracy, change: accuracy.Change, *, against: str) -> str:
    difference = accuracy_metrics.metric_of(judged).format_difference(judged)
    verdict = {"lower": "it is lower", "higher": "it is higher"}.get(change, "no difference is shown")
    moved = ""
    if judged.only_baseline is not None and judged.only_this is not None:
        moved = f"{judged.only_baseline} samples only {judged.baseline} got right, {judged.only_this} only this cell; "
    return f"Against {against} ({judged.baseline}): {difference}; {moved}{verdict}."
