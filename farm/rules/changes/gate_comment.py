"""Renders a gate's answer as a comment on a pull request; names that people gave cannot become Markdown in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.contract.cells import Budget
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.changes.gate import SHOWN_AGAIN, Finding, GateAnswer, describe_outputs, setting_label
from farm.rules.comparing.quantities import Change
from farm.rules.comparing.sides import comparison_between, index_by_sides
from farm.rules.planning.blocks import TWIN
from farm.rules.planning.estimates import ROUNDS
from farm.rules.presenting.explanations import explain_change
from farm.rules.presenting.lines import ComparisonLine, has_excessive_loss, make_comparison_line
from farm.rules.presenting.markdown import escape_text, format_code_span
from farm.rules.wording import numbers
from farm.rules.wording.vocabulary import with_mark

MAX_ROWS = 8
MAX_REASONS = 3
MAX_NAME = 60
NOT_JUDGED = "Nothing is said of the model: mend that and run the gate again"
# joins a headline with the risks that remain although the gate passed; no name contains it
SEPARATOR = "; "
# an address without characters that would end a Markdown link
_LINK = re.compile(r"https?://[^\s()<>\[\]]+")
# Headlines by the check that failed, the worst first. Checks that packages add have none of their own.
_HEADLINES = {
    "failed": "{} no longer runs where its base does",
    "parity": "{} gives other outputs than its base",
    "slower": "{}: {} than its base",
    "lower": "{} has a lower rate or accuracy than its base",
    "placement": "{} lost a placement or fusion of its base",
    "bigger": "{} takes more memory than its base",
    "unjudged": "{} gives other outputs than its base, which nobody judged",
    "undecided": "Whether {} is as fast as its base is undecided",
}


@dataclass(frozen=True, slots=True)
class GateCall:
    """One call of the gate: the candidate's name, the command that repeats the call, and how long it took."""

    candidate: str
    command: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """One setting of the table, with the cells of both sides; either may not have been measured.

    `sort_key` puts settings that fail the gate first, and larger changes before smaller ones.
    """

    old: Cell
    new: Cell
    comparison: Comparison | None
    # the comparison as it is shown; None where there is none
    line: ComparisonLine | None
    # the findings of this setting that fail the gate
    failures: Sequence[Finding]

    @property
    def sort_key(self) -> tuple[bool, float]:
        return not self.failures, -self.line.change.size if self.line else 0.0


def as_comment(answer: GateAnswer, document: Document, call: GateCall) -> str:
    """Render the comment in Markdown: a headline, a table, and a list of reasons and facts.

    The table has at most MAX_ROWS rows, and the list at most MAX_REASONS reasons. Operators, accuracy and sizes are
    those of the first row. An address that could end a link is left out.
    """
    rows = list_rows(answer, document)
    facts = [
        *map(escape_text, _list_reasons(answer)[:MAX_REASONS]),
        *([NOT_JUDGED] if answer.infra else []),
        *_confirm_first_row(rows),
        *_explain_first_row(rows),
        describe_detectable(document),
        *_suggest_budget(rows, Budget(document.budget)),
    ]
    ending = f"{numbers.duration(call.duration_s)}; on your own machine: {format_code_span(call.command)}"
    if document.url and _LINK.fullmatch(document.url):
        ending += f"; [the run]({document.url})"
    mark = "✅" if answer.is_passed else "❌"
    parts = [f"### {mark} {format_headline(answer, rows, name=call.candidate)}", _render_table(rows)]
    parts.append("\n".join(f"- {fact}" for fact in (*facts, ending) if fact))
    return "\n\n".join(filter(None, parts)) + "\n"


def _confirm_first_row(rows: Sequence[Row]) -> list[str]:
    """Say that a fresh block showed the headline again; the texts of other findings say that themselves."""
    slower = [
        finding for row in rows[:1] for finding in row.failures if finding.check == "slower" and not finding.metric
    ]
    return [SHOWN_AGAIN[:1].upper() + SHOWN_AGAIN[1:]] if any(finding.is_confirmed for finding in slower) else []


def _list_reasons(answer: GateAnswer) -> Sequence[str]:
    """List what fails the gate besides the p50, which the table shows; or why nothing was judged or compared."""
    if answer.infra or (not answer.compared and not answer.failures):
        return answer.infra or answer.unmeasured or [finding.text for finding in answer.findings]
    failures = [finding.text for finding in answer.failures if finding.check != "slower" or finding.metric]
    others = [finding for finding in answer.findings if finding not in answer.failures]
    return [*failures, *(finding.text for finding in others if finding.is_unconfirmed)]


def list_rows(answer: GateAnswer, document: Document) -> list[Row]:
    """Make a row for each pair of the gate: those that fail it first, and among these and the others by size.

    The largest change comes first; pairs without a compared figure count as unchanged. Where `infra` has a reason, none
    fails. Raises KeyError where a cell of a pair is not in the document.
    """
    cells, comparisons = {cell.id: cell for cell in document.cells}, index_by_sides(document.comparisons)
    rows = []
    for old, new in answer.pairs:
        comparison = comparison_between(comparisons, old, new)
        line = None
        if comparison is not None and comparison.ratio is not None:
            line = make_comparison_line(comparison, cells)
        failures = [finding for finding in answer.failures if (finding.baseline, finding.candidate) == (old, new)]
        rows.append(Row(cells[old], cells[new], comparison, line, failures))
    return sorted(rows, key=lambda row: row.sort_key)


def format_headline(answer: GateAnswer, rows: Sequence[Row], *, name: str) -> str:
    """Say in at most twelve words what fails the gate, or else what changed most; `name` is the candidate's.

    An excessive loss of accuracy comes before both. Where the gate passed, a finding that a fresh block did not confirm
    comes before what changed most, and the risks for callers follow after `; `, beyond the twelve words.
    """
    candidate = _quote_name(name)
    change = next((row.line.change for row in rows if row.line), None)
    accuracies = [row.new.accuracy for row in rows if row.new.accuracy and row.new.accuracy.baseline == row.old.id]
    if any(map(has_excessive_loss, accuracies)):
        return f"{candidate} is less accurate than its base"
    if not answer.is_passed:
        return _format_failure(answer, candidate, change)
    if unconfirmed := [finding.check for finding in answer.findings if finding.is_unconfirmed]:
        result = "which a fresh block left undecided" if "undecided" in unconfirmed else "not in a fresh block"
        text = f"{candidate} looked worse than its base, {result}"
    elif change is not None and change.is_decided:
        text = f"{candidate}: {change.text} than its base"
    elif any(finding.check == "undecided" for finding in answer.findings):
        text = _HEADLINES["undecided"].format(candidate)
    else:
        text = f"{candidate} is as fast as its base"
    return SEPARATOR.join([text, *_describe_risks(rows)])


def _format_failure(answer: GateAnswer, candidate: str, change: Change | None) -> str:
    if answer.infra:
        return f"{candidate} could not be measured"
    failed_checks = {finding.check for finding in answer.failures}
    for check, headline in _HEADLINES.items():
        if check in failed_checks:
            return headline.format(candidate, change.text if change and change.is_decided else "slower")
    return f"{candidate} is worse than its base" if failed_checks else f"Nothing of {candidate} could be compared"


def _describe_risks(rows: Sequence[Row]) -> Iterator[str]:
    """Describe changes that may break callers though the gate passed: renamed outputs, and outputs not judged."""
    parities = [outputs for row in rows for outputs in row.new.engines if outputs.cell == row.old.id]
    if renamed := next((outputs.renamed for outputs in parities if outputs.renamed), None):
        old, new = next(iter(renamed.items()))
        yield f"output {_quote_name(old)} is now called {_quote_name(new)}"
    if unjudged := [outputs for outputs in parities if outputs.unjudged]:
        largest = max((output.max_abs or 0.0 for outputs in unjudged for output in outputs.outputs), default=0.0)
        yield f"its outputs{f' differ by up to {largest:.2g} and' if largest else ''} were not judged"


def _quote_name(name: str) -> str:
    return format_code_span("_".join(name.split())[:MAX_NAME])


def describe_detectable(document: Document) -> str:
    """Say how small a change could be detected in every comparison, by the A/A pairs or else by the comparisons.

    Return an empty string where neither has that figure.
    """
    detectable = [
        (pair.axis, pair.smallest_detectable) for pair in document.comparisons if pair.smallest_detectable is not None
    ]
    if not detectable:
        return ""
    if of_twins := [change for axis, change in detectable if axis == TWIN]:
        return f"Changes under {numbers.percent(round(max(of_twins), 3))} are invisible here, by an A/A pair"
    return f"This could have seen a change of {numbers.percent(round(max(change for _, change in detectable), 3))}"


def _render_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = [["setting", "base", "candidate", "change", "verdict"], ["---"] * 5, *map(_list_columns, rows[:MAX_ROWS])]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if len(rows) > MAX_ROWS:
        table += f"\n\n{numbers.counted(len(rows) - MAX_ROWS, 'further setting')} changed less."
    return table


def _list_columns(row: Row) -> list[str]:
    """Return the columns of a table row; without a compared figure, they have the status of both sides."""
    setting = format_code_span(setting_label(row.old, row.new))
    failed_checks = dict.fromkeys(finding.check for finding in row.failures if finding.check != "slower")
    if row.line is None:
        statuses = [with_mark(cell.status) for cell in (row.old, row.new)]
        return [setting, *statuses, "", ", ".join(failed_checks) or "not compared"]
    change, unit = row.line.change, row.line.unit
    values = [f"{value} {unit}" for value in row.line.sides or ()] or ["", ""]
    size = f"{change.text} ({change.interval})" if change.is_decided else change.interval
    return [setting, *values, size, ", ".join([with_mark(change.word), *failed_checks])]


def _explain_first_row(rows: Sequence[Row]) -> Iterator[str]:
    """Explain the first row: the candidate's accuracy, outputs and size, and the operators behind its change."""
    for row in rows[:1]:
        if row.new.accuracy is not None and row.new.accuracy.text:
            yield f"Accuracy: {escape_text(row.new.accuracy.text)}"
        differences = [describe_outputs(outputs) for outputs in row.new.engines if outputs.cell == row.old.id]
        yield from (
            escape_text(text if text.startswith("Outputs ") else f"Outputs: {text}") for text in differences[:1]
        )
        if row.old.model_bytes and row.new.model_bytes:
            yield f"Size: {numbers.size(row.old.model_bytes)} → {numbers.size(row.new.model_bytes)}"
        if row.comparison is not None and (text := explain_change(row.comparison)):
            yield f"Operators: {escape_text(text)}"


def _suggest_budget(rows: Sequence[Row], budget: Budget) -> Iterator[str]:
    """Say which budget would decide the undecided comparisons; yield nothing where all are decided."""
    undecided = [row.comparison for row in rows if row.comparison and row.comparison.verdict == "undecided"]
    if not undecided:
        return
    longer = list(Budget)[list(Budget).index(budget) + 1 :]
    rounds_needed = [pair.rounds_needed for pair in undecided if pair.rounds_needed is not None]
    if len(rounds_needed) < len(undecided):
        yield "Undecided; no budget would decide with this machine's noise: take a quieter one"
        return
    rounds = max(rounds_needed)
    sufficient = (f"--budget {each}" for each in longer if ROUNDS[each].maximum >= rounds)
    yield f"Undecided; `{next(sufficient, f'--rounds {rounds}')}` would decide"
