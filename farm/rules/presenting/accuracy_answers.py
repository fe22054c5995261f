"""Answers which precisions of a run keep the accuracy of the model as uploaded, by its labelled data."""

from collections.abc import Mapping, Sequence
from math import inf

from farm.base.grouping import group_by
from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.quantities import change_of
from farm.rules.presenting.answers import Answer, is_short, name_models
from farm.rules.presenting.lines import is_less_accurate
from farm.rules.quality.accuracy_metrics import metric_of
from farm.rules.wording.numbers import counted, listed


def answer_accuracy(cells: Sequence[Cell], comparisons: Sequence[Comparison] = ()) -> Answer | None:
    """Say which precisions keep accuracy and which lose it; where none loses it, also which is slower by most.

    Of `comparisons` only those of precisions count, and twins do not. Each precision is judged by its worst cell. Where
    they are too many for a headline, they are only counted. Where no cell has a difference to a baseline, the accuracy
    of the first precision is given. Return None where no cell was judged on labelled data.
    """
    judged = [
        (cell, cell.accuracy)
        for cell in cells
        if cell.twin_of is None and cell.accuracy is not None and cell.accuracy.value is not None
    ]
    if not judged:
        return None
    by_precision = group_by(judged, lambda pair: pair[0].precision)
    worst = {name: min((accuracy for _, accuracy in pairs), key=_gain) for name, pairs in by_precision.items()}
    headline = _write_headline(worst, _find_slowest(cells, comparisons))
    first = judged[0][1]
    basis = f"{metric_of(first).title} of {counted(first.n, 'sample')}"
    return Answer(name_models(headline, [cell for cell, _ in judged]), basis)


def _gain(accuracy: Accuracy) -> float:
    """Return by how much a cell is more accurate than its baseline; infinite for a cell without one."""
    if accuracy.difference is None:
        return inf
    return accuracy.difference if accuracy.higher_is_better else -accuracy.difference


def _find_slowest(cells: Sequence[Cell], comparisons: Sequence[Comparison]) -> tuple[str, str]:
    """Return the precision that is slower than another by most, and by how much; two empty texts where none is."""
    by_id = {cell.id: cell for cell in cells}
    slower = [
        (change, by_id[comparison.candidate].precision)
        for comparison in comparisons
        if comparison.axis == "precision" and comparison.candidate in by_id
        if (change := change_of(comparison, by_id)).word == "slower"
    ]
    if not slower:
        return "", ""
    change, precision = max(slower, key=lambda entry: entry[0].size)
    return precision, change.text


def _write_headline(worst: Mapping[str, Accuracy], slowest: tuple[str, str]) -> str:
    compared = {precision: accuracy for precision, accuracy in worst.items() if accuracy.difference is not None}
    if not compared:
        precision, accuracy = next(iter(worst.items()))
        metric = metric_of(accuracy)
        return f"{precision} reaches {metric.format_value(accuracy.value)} {metric.title}"
    losing = [precision for precision, accuracy in compared.items() if is_less_accurate(accuracy)]
    keeping = [precision for precision in compared if precision not in losing]
    slowest_precision, change = slowest
    slower = f"; {slowest_precision} is {change}" if slowest_precision in keeping else ""
    if not losing:
        kept = "accuracy" if slower else "the accuracy of the upload"
        headline = f"{listed(keeping)} {_conjugate('keep', keeping)} {kept}{slower}"
    elif keeping:
        keep, lose = _conjugate("keep", keeping), _conjugate("lose", losing)
        headline = f"{listed(keeping)} {keep} accuracy, {listed(losing)} {lose} it"
    else:
        loss = metric_of(worst[losing[0]]).format_change(worst[losing[0]])
        headline = f"{listed(losing)} {_conjugate('lose', losing)} accuracy: {loss}"
    if is_short(headline):
        return headline
    return f"{len(keeping)} of {counted(len(compared), 'precision')} keep accuracy{slower}"


def _conjugate(verb: str, subjects: Sequence[str]) -> str:
    return f"{verb}s" if len(subjects) == 1 else verb
