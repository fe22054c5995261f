"""Makes the task accuracies of a bench document: each cell's own, and its loss against the FP32 cell of its runtime.

Across documents, a cell is also compared with earlier versions of the model.
"""

from collections.abc import Iterable, Sequence
from math import hypot

from farm.base.grouping import group_by
from farm.contract import document_cells as doc_cells
from farm.contract.evaluation import AccuracyReport, EvaluationRecipe
from farm.rules.presenting.lines import has_excessive_loss
from farm.rules.quality import accuracy, accuracy_metrics, evaluation

CPU = "CPUExecutionProvider"


def make_accuracy(report: AccuracyReport, *, measured_by: str | None = None) -> doc_cells.Accuracy:
    """Return a cell's accuracy with its interval, or with the reason why it has none.

    `measured_by` is the id of the cell that ran for this one, where that is another. Raises SamplesProblem where the
    report's samples cannot be unpacked.
    """
    recipe, judge = report.recipe, report.judge
    metric = accuracy_metrics.METRICS.get(recipe.metric)
    accuracy_without_value = doc_cells.Accuracy(
        metric=recipe.metric,
        recipe=evaluation.format_recipe(recipe) if judge is None else judge.file,
        output=report.output,
        higher_is_better=not judge.lower_is_better if judge else metric is None or metric.higher_is_better,
        judge_sha256=judge and judge.sha256,
        n=report.n,
        data_sha256=report.data_sha256,
        reason=report.reason,
        measured_by=measured_by,
    )
    if report.reason is not None:
        return accuracy_without_value.model_copy(update={"text": report.reason.text})
    figures: dict[str, object]
    if judge is not None and judge.value is not None:
        figures = {"value": judge.value}
    else:
        samples = evaluation.unpack_samples(report)
        mean = accuracy.estimate_share(samples) if samples.dtype.kind == "b" else accuracy.estimate_mean_error(samples)
        figures = {"value": mean.value, "ci_low": mean.ci_low, "ci_high": mean.ci_high, "samples": report.samples}
    return _add_text(accuracy_without_value.model_copy(update=figures))


def _add_text(judged: doc_cells.Accuracy, sentence: str = "") -> doc_cells.Accuracy:
    text = f"{accuracy_metrics.metric_of(judged).describe(judged)} {sentence}".rstrip()
    return judged.model_copy(update={"text": text})


def compare_with_fp32(cells: Sequence[doc_cells.Cell], *, keep_samples: bool = False) -> list[doc_cells.Cell]:
    """Return the cells with the difference of each to its FP32 cell, sample by sample.

    Cells of a second model are compared with the same cell of the first model instead. A cell without a baseline keeps
    its accuracy without a difference. Packed samples are removed, unless `keep_samples`.
    """
    judged = [cell for cell in cells if cell.accuracy is not None and cell.accuracy.samples]
    return [_compare_cell(cell, judged, keep_samples=keep_samples) for cell in cells]


def compare_across_runs(cells: Sequence[doc_cells.Cell]) -> list[doc_cells.Cell]:
    """Return the cells of several runs, each compared with an FP32 cell of its model and runtime from any of the runs.

    Accuracy may be compared across runs because the samples are the same on every machine. The order stays, and packed
    samples are removed.
    """
    compared = list(cells)
    groups = group_by(range(len(cells)), lambda index: (cells[index].model_sha256, cells[index].runtime))
    for indices in groups.values():
        for index, cell in zip(indices, compare_with_fp32([cells[index] for index in indices]), strict=True):
            compared[index] = cell
    return compared


def compare_versions(cells: Iterable[doc_cells.Cell], earlier: Sequence[doc_cells.Accuracy]) -> list[doc_cells.Cell]:
    """Return a version's cells; an excessive loss against an earlier version replaces the difference to FP32.

    `earlier` are the accuracies of earlier versions: of those on the same data, the first one is compared with.
    """
    compared = []
    for cell in cells:
        if cell.accuracy is not None:
            cell = cell.model_copy(update={"accuracy": _compare_with_earlier(cell.accuracy, earlier)})
        compared.append(cell)
    return compared


def drop_lossy(versions: Iterable[doc_cells.Accuracy]) -> list[doc_cells.Accuracy]:
    """Return the accuracies that show no excessive loss against the version before, the newest version's first.

    `versions` must be in order from the oldest. Each is compared with the newest earlier one on the same data that was
    itself kept.
    """
    lossless: list[doc_cells.Accuracy] = []
    for judged in versions:
        if not has_excessive_loss(_compare_with_earlier(judged, lossless)):
            lossless.insert(0, judged)
    return lossless


def _compare_with_earlier(new: doc_cells.Accuracy, earlier: Sequence[doc_cells.Accuracy]) -> doc_cells.Accuracy:
    """Return the accuracy with its loss against the first earlier version on the same data, where it is excessive.

    The samples of versions are not paired, so the interval is Newcombe's (method 10, without correlation).
    """
    old = next((old for old in earlier if _data_of(old) == _data_of(new)), None)
    figures = () if old is None else (old.value, old.ci_low, old.ci_high, new.value, new.ci_low, new.ci_high)
    if not figures or None in figures:
        return new
    old_value, old_low, old_high, new_value, new_low, new_high = (figure or 0.0 for figure in figures)
    change = new_value - old_value
    if has_excessive_loss(new) and abs(new.difference or 0.0) > abs(change) - 1e-9:
        # The loss against FP32 is as large, and paired sample by sample, which gives the better interval.
        return new
    compared = new.model_copy(
        update={
            "difference": change,
            "difference_low": change - hypot(new_value - new_low, old_high - old_value),
            "difference_high": change + hypot(new_high - new_value, old_value - old_low),
            "p": None,
            "only_baseline": None,
            "only_this": None,
        }
    )
    if not has_excessive_loss(compared):
        return new
    loss = accuracy_metrics.metric_of(compared).format_change(compared)
    return _add_text(compared, f"An earlier version on the same data: {loss}.")


def find_baseline(
    cell: doc_cells.Cell, accuracy: doc_cells.Accuracy, judged: Sequence[doc_cells.Cell]
) -> doc_cells.Cell | None:
    """Find the cell that a cell's accuracy is compared with, among those judged; None where there is none.

    A cell of another model than the first is compared with the same cell of the first model. Any other is compared with
    the FP32 cell of its model and runtime that is closest to it: on the same provider or else the CPU, of the model as
    it was uploaded, as much optimised. An FP32 cell itself is compared only with the uploaded model on the CPU
    provider, fully optimised. Both have the same runtime and labelled data, and A/A copies are no baselines. The first
    model is that of the first of `judged`. Raises IndexError where `judged` is empty.
    """
    same_data = [
        other
        for other in judged
        if other.accuracy is not None
        and _data_of(other.accuracy) == _data_of(accuracy)
        and (other.runtime, other.twin_of) == (cell.runtime, None)
    ]
    first_model = judged[0].model_sha256
    if cell.model_sha256 != first_model:
        setting = (first_model, _variant_of(cell), cell.batch, cell.threads)
        return next(
            (
                other
                for other in same_data
                if (other.model_sha256, _variant_of(other), other.batch, other.threads) == setting
            ),
            None,
        )
    is_fp32 = cell.precision == "fp32"
    baselines = [
        other
        for other in same_data
        if (other.precision, other.model_sha256) == ("fp32", cell.model_sha256)
        and _variant_of(other) != _variant_of(cell)
        and (not is_fp32 or (other.provider, other.recipe, other.optimization) == (CPU, "", "all"))
    ]
    return min(baselines, key=lambda other: _distance(other, cell), default=None)


def _data_of(judged: doc_cells.Accuracy) -> tuple[object, ...]:
    return judged.recipe, judged.output, judged.data_sha256, judged.judge_sha256, judged.n


def _variant_of(cell: doc_cells.Cell) -> tuple[object, ...]:
    options = tuple(sorted(cell.provider_options.items()))
    return cell.precision, cell.recipe, cell.provider, options, cell.optimization


def _distance(other: doc_cells.Cell, cell: doc_cells.Cell) -> tuple[object, ...]:
    """Return a sort key for the baselines of a cell: the closest one has the smallest key."""
    return (
        other.provider != cell.provider,
        other.provider != CPU,
        other.recipe != "",
        other.optimization != cell.optimization,
        other.block != cell.block,
        (other.batch, other.threads) != (cell.batch, cell.threads),
    )


def _compare_cell(cell: doc_cells.Cell, judged: Sequence[doc_cells.Cell], *, keep_samples: bool) -> doc_cells.Cell:
    compared = cell.accuracy
    if compared is None:
        return cell
    if compared.samples:
        compared = _compare_with_baseline(cell, compared, find_baseline(cell, compared, judged))
    if not keep_samples:
        compared = compared.model_copy(update={"samples": ""})
    return cell.model_copy(update={"accuracy": compared})


def _compare_with_baseline(
    cell: doc_cells.Cell, judged: doc_cells.Accuracy, baseline: doc_cells.Cell | None
) -> doc_cells.Accuracy:
    """Return the accuracy with its difference to the baseline's; unchanged without one, or with too few samples."""
    if baseline is None or baseline.accuracy is None:
        return judged
    old, new = _unpack_samples(baseline.accuracy), _unpack_samples(judged)
    are_shares = new.dtype.kind == "b"
    if judged.n < 2 and not are_shares:
        return judged
    difference = accuracy.compare_shares(old, new) if are_shares else accuracy.compare_errors(old, new)
    compared = judged.model_copy(
        update={
            "baseline": baseline.id,
            "difference": difference.value,
            "difference_low": difference.ci_low,
            "difference_high": difference.ci_high,
            "p": difference.p,
            "only_baseline": difference.only_old,
            "only_this": difference.only_new,
        }
    )
    against = baseline.model if baseline.model_sha256 != cell.model_sha256 else baseline.uploaded
    return _add_text(compared, _describe_difference(compared, difference.change, against=against or "FP32"))


def _unpack_samples(judged: doc_cells.Accuracy) -> evaluation.Judged:
    recipe = EvaluationRecipe(metric=judged.metric)
    return evaluation.unpack_samples(AccuracyReport(arm=0, recipe=recipe, n=judged.n, samples=judged.samples))


def _describe_difference(judged: doc_cells.Accuracy, change: accuracy.Change, *, against: str) -> str:
    difference = accuracy_metrics.metric_of(judged).format_difference(judged)
    verdict = {"lower": "it is lower", "higher": "it is higher"}.get(change, "no difference is shown")
    exchanged = ""
    if judged.only_baseline is not None and judged.only_this is not None:
        exchanged = (
            f"{judged.only_baseline} samples only {judged.baseline} got right, {judged.only_this} only this cell; "
        )
    return f"Against {against} ({judged.baseline}): {difference}; {exchanged}{verdict}."
