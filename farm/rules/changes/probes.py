"""One step of a bisection: what a measured block says of a probed release beside the good one."""

from dataclasses import dataclass

from farm.contract.document import Document
from farm.contract.document_comparisons import Comparison
from farm.rules.changes import watch_rounds
from farm.rules.changes.bisection import Outcome
from farm.rules.changes.watch_rounds import Judgement, Pair, Rule
from farm.rules.findings.kinds import Key


@dataclass(frozen=True, slots=True)
class Sought:
    """The change whose release is looked for: one kind in one series.

    `ratio`: how large it is where it is a ratio; `low`: the lower end of its interval.
    """

    kind: Key
    series: str
    ratio: float | None = None
    low: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Good, bad or skipped, why, and the ratio to the good release with its interval where there is one."""

    outcome: Outcome
    text: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    def as_plain(self) -> dict[str, object]:
        """Plain values, as they are stored."""
        figures = {"ratio": self.ratio, "low": self.low, "high": self.high}
        return {"outcome": self.outcome.value, "text": self.text, **figures}


def read_step(document: Document, rule: Rule, sought: Sought, *, old: str, new: str) -> Step:
    """Read a document of the good release `old` and the probed one `new` (`distribution==version`)."""
    judgement = watch_rounds.judge(document, rule, old=old, new=new)
    mine = next((pair for pair in watch_rounds.pairs(document, old=old, new=new) if pair.series == sought.series), None)
    comparison = mine.comparison if mine is not None else None
    outcome, text = _said(judgement, comparison, sought, pair=mine, rule=rule)
    if comparison is None:
        return Step(outcome, text)
    return Step(outcome, text, comparison.ratio, comparison.ci_low, comparison.ci_high)


def _said(
    judgement: Judgement, comparison: Comparison | None, sought: Sought, *, pair: Pair | None, rule: Rule
) -> tuple[Outcome, str]:
    same = (sought.kind, sought.series)
    found = [one for one in judgement.findings if (one.kind, one.series) == same]
    if found:
        return Outcome.BAD, found[0].text
    if same in judgement.cleared or _is_without(comparison, sought, rule):
        return Outcome.GOOD, ""
    doubts = [*judgement.infra, *(doubt.text for doubt in judgement.undecided)]
    endings = [] if pair is None else [cell.reason.text for cell in (pair.new, pair.old) if cell.reason is not None]
    return Outcome.SKIPPED, [*endings, *doubts, "It was not compared."][0]


def _is_without(comparison: Comparison | None, sought: Sought, rule: Rule) -> bool:
    """Slower by less than the rule lets pass; or undecided, and surely less than that or than the change that is looked
    for: nearer to none than to it, with an interval that ends below its own."""
    if sought.kind != "slower" or comparison is None:
        return False
    if comparison.verdict == "slower" or watch_rounds.is_surely_let_pass(comparison, rule):
        return True
    if comparison.verdict != "undecided" or sought.ratio is None or comparison.ci_high is None:
        return False
    middle = 1.0 + (sought.ratio - 1.0) / 2.0
    is_nearer = comparison.ratio is not None and comparison.ratio < middle
    return is_nearer and comparison.ci_high < max(middle, sought.low or middle)
