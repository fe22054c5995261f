"""What a pair of cells shows under each kind of change: latency, outputs, placement, endings, metrics. Pure."""

from collections.abc import Iterable, Iterator

from farm.contract.document_cells import Cell, ParityOutput
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.cells.metrics import ALERTING
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.findings.cell_pairs import Pair, series_label
from farm.rules.findings.kind import Change, Kind
from farm.rules.presenting import metric_changes, sentences
from farm.rules.presenting.lines import is_less_accurate, is_wrong
from farm.rules.runtimes.order import is_downgrade
from farm.rules.tracing.placement import cell_changes
from farm.rules.wording.vocabulary import ENDINGS

# both sides fail parity: errors that grew by this factor are worse
WORSE_PARITY = 2.0
# reasons for which an older release may not load a model
LOADING_LIMITS = (ReasonCode.OPSET_TOO_NEW, ReasonCode.IR_TOO_NEW)


def find_changes(kind: Kind, pair: Pair, *, allowed: float) -> Iterable[Change]:
    """Find the changes of this kind between the cells of a pair. `allowed`: the fraction that passes."""
    if not (pair.is_finished or kind.is_of_endings):
        return []
    return _metrics(kind, pair, allowed) if kind.compare is None else kind.compare(pair, allowed)


def latency_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find the change of latency by the comparison's verdict."""
    comparison = pair.comparison
    if comparison is None:
        yield Change("undecided", f"{series_label(pair.new)}: not measured in one block.")
        return
    # without the sign in front: the kind says it
    signed = sentences.comparison_sentence(comparison, {pair.old.id: pair.old, pair.new.id: pair.new})
    text = signed.partition(": ")[2]
    match comparison.verdict:
        case "undecided" | "not comparable":
            yield Change("passed" if is_surely_allowed(comparison, allowed) else "undecided", text)
        case "faster":
            yield Change("better", text)
        case "equal":
            yield Change("well")
        case "slower" if comparison.ratio is not None and comparison.ratio > 1.0 + allowed:
            yield Change("worse", text, comparison.ratio)


def is_surely_allowed(comparison: Comparison, allowed: float) -> bool:
    """Whether an undecided comparison had enough rounds, and its whole interval lies below what the rule lets pass."""
    high, is_measured = comparison.ci_high, comparison.rounds >= PLANNED_LOOKS[0]
    return comparison.verdict == "undecided" and is_measured and high is not None and high <= 1.0 + allowed


def parity_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    if pair.is_of_models:
        yield from _outputs(pair)
        return
    before, after = pair.old.parity, pair.new.parity
    what = f"{series_label(pair.new)} on {pair.new.runtime}"
    if after.verdict == "fail" and before.verdict != "fail":
        yield Change("worse", f"{what} fails parity, which {pair.old.runtime} keeps: {after.text}")
    elif after.verdict == "fail" and (grown := describe_parity_growth(before.outputs, after.outputs)):
        yield Change("worse", f"{what} is further off than on {pair.old.runtime}: {grown}")
    elif after.verdict == "pass" and before.verdict == "fail":
        yield Change("better", f"{what} keeps parity, which {pair.old.runtime} failed.")
    elif after.verdict == "pass":
        yield Change("well")
    elif after.verdict == "not_measured" and before.verdict != "not_measured":
        yield Change("undecided", f"{what}: its parity was not measured. {after.text}".strip())


def _outputs(pair: Pair) -> Iterator[Change]:
    """Find the change between the outputs of two models; outputs without a tolerance give none."""
    beside = next((found for found in pair.new.engines if found.cell == pair.old.id), None)
    if beside is not None and beside.verdict == "fail":
        yield Change("worse", f"{series_label(pair.new)}: {beside.text}")
    elif beside is not None and beside.verdict == "pass":
        yield Change("well")


def accuracy_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find the change of accuracy between two models on labelled data; releases are judged by their outputs instead."""
    judged = pair.new.accuracy
    if not pair.is_of_models or judged is None or judged.baseline != pair.old.id:
        return
    if is_less_accurate(judged):
        yield Change("worse", f"{series_label(pair.new)} is less accurate than {pair.old.model}: {judged.text}")
    else:
        yield Change("well")


def describe_parity_growth(before: Iterable[ParityOutput], after: Iterable[ParityOutput]) -> str:
    """Name the output whose error grew most, in words; empty when none grew by more than WORSE_PARITY."""
    known = {output.name: output.rmse for output in before}
    sizes = [(output.name, known.get(output.name), output.rmse) for output in after]
    grown = [(new / old, name, old, new) for name, old, new in sizes if old and new and new > WORSE_PARITY * old]
    if not grown:
        return ""
    factor, name, old, new = max(grown)
    return f"the error of {name} grew ×{factor:.2g}, from RMSE {old:.2g} to {new:.2g}."


def placement_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    if not (pair.old.operators and pair.new.operators):
        return
    found = cell_changes(pair.old, pair.new)
    where = f"{series_label(pair.new)}, {' → '.join(pair.names)}"
    worse = [change.sentence() for change in found if change.is_worse]
    better = [change.sentence() for change in found if not change.is_worse]
    if worse:
        yield Change("worse", f"{where}: {' '.join(worse)}")
    if better:
        yield Change("better", f"{where}: {' '.join(better)}")
    if not found:
        yield Change("well")


def ending_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find out whether one side ended without figures; failing on both sides is no change."""
    if pair.is_finished:
        yield Change("well")
    elif _is_older_limit(pair):
        yield Change("undecided", f"{series_label(pair.new)} on {pair.new.runtime}, an older release: {_why(pair.new)}")
    elif pair.old.status is CellStatus.DONE:
        old, new = pair.names
        how = "ran with wrong outputs" if is_wrong(pair.old) else "worked"
        text = f"{series_label(pair.new)} {how} on {old} and {ENDINGS[pair.new.status]} on {new}: "
        yield Change("worse", text + _why(pair.new))
    elif pair.new.status is CellStatus.DONE:
        old, new = pair.names
        text = f"{series_label(pair.new)} works on {new}; on {old} it did not."
        yield Change("better", text)


def _is_older_limit(pair: Pair) -> bool:
    """Whether the newer side is an older release, which is known not to load the model: nothing became worse."""
    reason = pair.new.reason
    is_older = is_downgrade(pair.old.runtime.version, pair.new.runtime.version)
    return is_older and reason is not None and reason.code in LOADING_LIMITS


def _why(cell: Cell) -> str:
    return cell.reason.text if cell.reason is not None else "no reason was given."


def _metrics(kind: Kind, pair: Pair, allowed: float) -> Iterator[Change]:
    """Find the changes of the metrics that alert as this kind, by their own verdicts."""
    for change in metric_changes.list_further(pair.comparison) if pair.comparison is not None else ():
        judging = ALERTING.get(change.name)
        if judging is None or judging.alerts_as != kind.key:
            continue
        old, new = pair.names
        text = f"{series_label(pair.new)}: {metric_changes.describe(change)}, {change.verdict} from {old} to {new}."
        is_beyond = change.ratio is None or change.ratio > 1.0 + allowed
        is_small = change.verdict == "equal" or abs(change.candidate - change.baseline) < judging.min_alert
        if change.verdict == "undecided":
            if is_beyond and not is_small:
                yield Change("undecided", text)
        elif is_small:
            yield Change("well")
        elif metric_changes.is_gain(change):
            yield Change("better", text)
        else:
            yield Change("worse", text, change.ratio) if is_beyond else Change("well")
