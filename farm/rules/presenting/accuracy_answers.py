"""What labelled data say of a run in one look: which precisions keep the accuracy of the model as uploaded. Pure."""

from collections.abc import Sequence

from farm.base.grouping import group_by
from farm.contract.document_cells import Accuracy, Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.comparing.quantities import change_of
from farm.rules.presenting.answers import Answer, is_short, name_models
from farm.rules.presenting.lines import is_less_accurate
from farm.rules.quality.accuracy_metrics import metric_of
from farm.rules.wording.numbers import counted, listed


def answer_accuracy(cells: Sequence[Cell], comparisons: Sequence[Comparison] = ()) -> Answer | None:
    """Return which precisions lose accuracy, and which that keeps it is slowest beside another; None where no cell was
    judged on labelled data."""
    judged = [
        (cell, cell.accuracy)
        for cell in cells
        if cell.twin_of is None and cell.accuracy is not None and cell.accuracy.value is not None
    ]
    if not judged:
        return None
    # a precision stands for the worst of its cells
    by_precision = group_by(judged, lambda each: each[0].precision)
    worst = {name: min((found for _, found in own), key=_gain) for name, own in by_precision.items()}
    metric = metric_of(judged[0][1])
    headline = name_models(_headline(worst, _slowest(cells, comparisons)), [cell for cell, _ in judged])
    return Answer(headline, f"{metric.title} of {counted(judged[0][1].n, 'sample')}")


def _gain(found: Accuracy) -> float:
    """Return by how much a cell is better than its baseline; a baseline itself comes last."""
    if found.difference is None:
        return float("inf")
    return found.difference if found.higher_is_better else -found.difference


def _slowest(cells: Sequence[Cell], comparisons: Sequence[Comparison]) -> tuple[str, str]:
    """Return the precision that is the most slower than another, and by how much; empty where none is."""
    known = {cell.id: cell for cell in cells}
    slower = [
        (change, known[comparison.candidate].precision)
        for comparison in comparisons
        if comparison.axis == "precision" and comparison.candidate in known
        if (change := change_of(comparison, known)).word == "slower"
    ]
    if not slower:
        return "", ""
    change, name = max(slower, key=lambda found: found[0].size)
    return name, f"; {name} is {change.text}"


def _headline(worst: dict[str, Accuracy], slowest: tuple[str, str]) -> str:
    compared = {name: found for name, found in worst.items() if found.difference is not None}
    lost = [name for name, found in compared.items() if is_less_accurate(found)]
    kept = [name for name in compared if name not in lost]
    if not compared:
        name, found = next(iter(worst.items()))
        return f"{name} reaches {metric_of(found).format_value(found.value)} {metric_of(found).title}"
    slower = slowest[1] if slowest[0] in kept else ""
    if not lost:
        what = "accuracy" if slower else "the accuracy of the upload"
        said = f"{listed(kept)} {_verb('keep', kept)} {what}{slower}"
    elif kept:
        said = f"{listed(kept)} {_verb('keep', kept)} accuracy, {listed(lost)} {_verb('lose', lost)} it"
    else:
        said = f"{listed(lost)} {_verb('lose', lost)} accuracy: {metric_of(worst[lost[0]]).format_loss(worst[lost[0]])}"
    short = f"{len(kept)} of {counted(len(compared), 'precision')} keep accuracy{slower}"
    return said if is_short(said) else short


def _verb(verb: str, names: Sequence[str]) -> str:
    return f"{verb}s" if len(names) == 1 else verb
