"""Finds what changed between the cells of a pair, with one function for each kind of change.

Each function takes a pair and the largest change that a rule allows, as a fraction. Some kinds ignore the latter.
"""

from collections.abc import Iterable, Iterator

from farm.contract.document_cells import ParityOutput
from farm.contract.document_comparisons import Comparison
from farm.contract.reasons import CellStatus, ReasonCode
from farm.rules.cells.metrics import ALERTING
from farm.rules.comparing.look_levels import PLANNED_LOOKS
from farm.rules.findings.cell_pairs import Pair, series_label
from farm.rules.findings.kind import Change, Kind
from farm.rules.presenting import metric_changes, sentences
from farm.rules.presenting.lines import is_less_accurate, is_wrong
from farm.rules.runtimes.order import is_downgrade
from farm.rules.tracing.placement import compare_cell_placements
from farm.rules.wording.vocabulary import ENDINGS

# where both sides fail parity, an error that grew by more than this factor is worse
WORSE_PARITY = 2.0
# reasons for which an older release may not load a model
LOADING_LIMITS = (ReasonCode.OPSET_TOO_NEW, ReasonCode.IR_TOO_NEW)


def find_changes(kind: Kind, pair: Pair, *, allowed: float) -> Iterable[Change]:
    """Find the changes of this kind between the cells of a pair; `allowed` is how large one may be, as a fraction.

    A pair that did not finish on both sides has none, unless `kind.is_of_endings`.
    """
    if not (pair.is_finished or kind.is_of_endings):
        return []
    return _find_metric_changes(kind, pair, allowed) if kind.compare is None else kind.compare(pair, allowed)


def find_latency_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find the change of latency by the comparison's verdict; nothing for a slowdown within what is allowed.

    A pair that was not compared, or is not comparable, is undecided. An undecided verdict that stays within what is
    allowed is `passed`.
    """
    comparison = pair.comparison
    if comparison is None:
        yield Change("undecided", f"{series_label(pair.new)}: not measured in one block.")
        return
    sentence = sentences.comparison_sentence(comparison, {pair.old.id: pair.old, pair.new.id: pair.new})
    # the verdict's sign in front is left out, since the kind has one
    text = sentence.partition(": ")[2]
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
    """Whether an undecided comparison surely stays within the allowed change, by its interval and enough rounds."""
    high, has_enough_rounds = comparison.ci_high, comparison.rounds >= PLANNED_LOOKS[0]
    return comparison.verdict == "undecided" and has_enough_rounds and high is not None and high <= 1.0 + allowed


def find_parity_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find whether the new side fails parity where the old one did not; it is `better` where that is reversed.

    Where both fail, it is `worse` if an error grew by more than a factor of WORSE_PARITY, and else there is no change.
    It is undecided where only the new side was not measured. Of two models, find whether their outputs differ.
    """
    if pair.is_of_models:
        yield from _find_output_changes(pair)
        return
    before, after = pair.old.parity, pair.new.parity
    subject = f"{series_label(pair.new)} on {pair.new.runtime}"
    if after.verdict == "fail" and before.verdict != "fail":
        yield Change("worse", f"{subject} fails parity, which {pair.old.runtime} keeps: {after.text}")
    elif after.verdict == "fail" and (grown := describe_parity_growth(before.outputs, after.outputs)):
        yield Change("worse", f"{subject} is further off than on {pair.old.runtime}: {grown}")
    elif after.verdict == "pass" and before.verdict == "fail":
        yield Change("better", f"{subject} keeps parity, which {pair.old.runtime} failed.")
    elif after.verdict == "pass":
        yield Change("well")
    elif after.verdict == "not_measured" and before.verdict != "not_measured":
        yield Change("undecided", f"{subject}: its parity was not measured. {after.text}".strip())


def _find_output_changes(pair: Pair) -> Iterator[Change]:
    """Find the change between the outputs of two models; outputs without a tolerance give none."""
    parity = next((parity for parity in pair.new.engines if parity.cell == pair.old.id), None)
    if parity is not None and parity.verdict == "fail":
        yield Change("worse", f"{series_label(pair.new)}: {parity.text}")
    elif parity is not None and parity.verdict == "pass":
        yield Change("well")


def find_accuracy_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find whether the new one of two models is less accurate on labelled data; `well` where that is not shown.

    Pairs without an accuracy against the old cell yield nothing, nor do pairs of releases, since their outputs are
    judged instead.
    """
    accuracy = pair.new.accuracy
    if not pair.is_of_models or accuracy is None or accuracy.baseline != pair.old.id:
        return
    if is_less_accurate(accuracy):
        yield Change("worse", f"{series_label(pair.new)} is less accurate than {pair.old.model}: {accuracy.text}")
    else:
        yield Change("well")


def describe_parity_growth(before: Iterable[ParityOutput], after: Iterable[ParityOutput]) -> str:
    """Describe the output whose error grew most; empty where none grew by more than a factor of WORSE_PARITY."""
    errors_before = {output.name: output.rmse for output in before}
    sizes = [(output.name, errors_before.get(output.name), output.rmse) for output in after]
    grown = [(new / old, name, old, new) for name, old, new in sizes if old and new and new > WORSE_PARITY * old]
    if not grown:
        return ""
    factor, name, old, new = max(grown)
    return f"the error of {name} grew ×{factor:.2g}, from RMSE {old:.2g} to {new:.2g}."


def find_placement_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find whether nodes moved to another provider, fusions were gained or lost, or the number of copies changed.

    All worse changes are joined into one, and so are all better ones. There is none where a side was not traced.
    """
    if not (pair.old.operators and pair.new.operators):
        return
    changes = compare_cell_placements(pair.old, pair.new)
    subject = f"{series_label(pair.new)}, {' → '.join(pair.names)}"
    worse = [change.sentence() for change in changes if change.is_worse]
    better = [change.sentence() for change in changes if not change.is_worse]
    if worse:
        yield Change("worse", f"{subject}: {' '.join(worse)}")
    if better:
        yield Change("better", f"{subject}: {' '.join(better)}")
    if not changes:
        yield Change("well")


def find_outcome_changes(pair: Pair, allowed: float) -> Iterator[Change]:
    """Find whether exactly one side ended without figures; failing on both sides is no change.

    It is undecided where the new side is the older release, and too old to load the model.
    """
    old, new = pair.names
    reason = pair.new.reason.text if pair.new.reason is not None else "no reason was given."
    if pair.is_finished:
        yield Change("well")
    elif _is_limit_of_older_release(pair):
        yield Change("undecided", f"{series_label(pair.new)} on {pair.new.runtime}, an older release: {reason}")
    elif pair.old.status is CellStatus.DONE:
        ran = "ran with wrong outputs" if is_wrong(pair.old) else "worked"
        text = f"{series_label(pair.new)} {ran} on {old} and {ENDINGS[pair.new.status]} on {new}: {reason}"
        yield Change("worse", text)
    elif pair.new.status is CellStatus.DONE:
        text = f"{series_label(pair.new)} works on {new}; on {old} it did not."
        yield Change("better", text)


def _is_limit_of_older_release(pair: Pair) -> bool:
    """Whether the new side is the older release and too old to load the model, so that nothing became worse."""
    reason = pair.new.reason
    is_older = is_downgrade(pair.old.runtime.version, pair.new.runtime.version)
    return is_older and reason is not None and reason.code in LOADING_LIMITS


def _find_metric_changes(kind: Kind, pair: Pair, allowed: float) -> Iterator[Change]:
    """Find the changes of the metrics that alert as this kind, by the verdict on each metric."""
    for change in metric_changes.list_secondary_changes(pair.comparison) if pair.comparison is not None else ():
        judging = ALERTING.get(change.name)
        if judging is None or judging.alerts_as != kind.key:
            continue
        old, new = pair.names
        text = f"{series_label(pair.new)}: {metric_changes.describe(change)}, {change.verdict} from {old} to {new}."
        is_too_large = change.ratio is None or change.ratio > 1.0 + allowed
        is_small = change.verdict == "equal" or abs(change.candidate - change.baseline) < judging.min_alert
        if change.verdict == "undecided":
            if is_too_large and not is_small:
                yield Change("undecided", text)
        elif is_small:
            yield Change("well")
        elif metric_changes.is_gain(change):
            yield Change("better", text)
        elif is_too_large:
            yield Change("worse", text, change.ratio)
        else:
            yield Change("well")
