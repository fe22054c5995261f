"""A gate over a bench document: may the candidate replace the baseline? And its reports for people and machines."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import quoteattr

from farm.contract.document import Cell, Comparison, Document
from farm.contract.reasons import CellStatus
from farm.rules.tracing.placement import placement_changes

Check = Literal["slower", "parity", "placement", "failed", "undecided"]
CHECKS: tuple[Check, ...] = ("slower", "parity", "placement", "failed", "undecided")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one pair of cells. `is_failure`: the gate was told to fail on it."""

    check: Check
    baseline: str
    candidate: str
    text: str
    is_failure: bool


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """All findings of a document; the gate is passed when none is a failure."""

    findings: tuple[Finding, ...]
    compared: int

    @property
    def is_passed(self) -> bool:
        """A gate that compared nothing has not shown anything, so it is not passed."""
        return self.compared > 0 and not any(finding.is_failure for finding in self.findings)


def judge_gate(document: Document, *, fail_on: Collection[str], axis: str = "runtime") -> GateAnswer:
    """Check every comparison along `axis`; `fail_on` names the checks that fail the gate."""
    cells = {cell.id: cell for cell in document.cells}
    pairs = [comparison for comparison in document.comparisons if comparison.axis == axis]
    findings: list[Finding] = []
    for pair in pairs:
        old, new = cells[pair.baseline], cells[pair.candidate]
        for check, text in _checks(pair, old=old, new=new):
            findings.append(Finding(check, old.id, new.id, text, is_failure=check in fail_on))
    return GateAnswer(findings=tuple(findings), compared=len(pairs))


def _checks(pair: Comparison, *, old: Cell, new: Cell) -> list[tuple[Check, str]]:
    found: list[tuple[Check, str]] = []
    where = _where(new)
    if new.status is not CellStatus.DONE:
        why = new.reason.text if new.reason else "no reason was given"
        return [("failed", f"{where} is {new.status}: {why}")] if old.status is CellStatus.DONE else []
    if pair.verdict == "slower" and pair.ratio is not None:
        interval = f" (95 % interval ×{pair.ci_low:.3f}–{pair.ci_high:.3f})" if pair.ci_low and pair.ci_high else ""
        found.append(("slower", f"{where} is ×{pair.ratio:.3f} of {old.runtime}{interval}"))
    if pair.verdict in ("undecided", "not comparable"):
        found.append(("undecided", f"{where} against {old.runtime} is {pair.verdict}{_because(pair)}"))
    if new.parity.verdict == "fail" and old.parity.verdict != "fail":
        found.append(("parity", f"{where} fails parity: {new.parity.text or 'outputs differ beyond tolerance'}"))
    changes = placement_changes(old.operators, new.operators, copies=(old.copies or 0, new.copies or 0))
    found += [("placement", f"{where}: {change.sentence()}") for change in changes if change.is_worse]
    return found


def _because(pair: Comparison) -> str:
    return f": {pair.reason}" if pair.reason else ""


def _where(cell: Cell) -> str:
    batch = f", batch {cell.batch}" if cell.batch is not None else ""
    return f"{cell.runtime}, {cell.provider}, {cell.precision}{batch}"


def as_markdown(answer: GateAnswer, document: Document) -> str:
    """A summary for a pull request."""
    lines = [f"## onnxfarm gate: {'passed' if answer.is_passed else 'failed'}", "", document.sentence, ""]
    if not answer.compared:
        lines.append("Nothing was compared: the document holds no pair of cells along this axis.")
    if answer.findings:
        lines += ["| check | fails the gate | finding |", "|---|---|---|"]
        lines += [
            f"| {finding.check} | {'yes' if finding.is_failure else 'no'} | {finding.text.replace('|', '/')} |"
            for finding in answer.findings
        ]
    elif answer.compared:
        lines.append(f"{answer.compared} comparisons, nothing found.")
    return "\n".join(lines) + "\n"


def as_junit(answer: GateAnswer, document: Document) -> str:
    """JUnit XML: one test case a comparison and check that failed, one for the whole when nothing did."""
    failures = [finding for finding in answer.findings if finding.is_failure]
    cases = [
        f"  <testcase classname={quoteattr('onnxfarm.' + f.check)} name={quoteattr(f.candidate)}>"
        f"<failure message={quoteattr(f.text)}/></testcase>"
        for f in failures
    ]
    if not failures:
        empty = '<failure message="nothing was compared"/>' if not answer.compared else ""
        cases = [f'  <testcase classname="onnxfarm.gate" name="{answer.compared} comparisons">{empty}</testcase>']
    count = len(failures) or int(not answer.compared)
    name = quoteattr(document.sentence or "onnxfarm gate")
    head = f'<testsuite name={name} tests="{len(cases)}" failures="{count}">'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"]) + "\n"


def as_benchmark_entries(document: Document) -> list[dict[str, object]]:
    """Entries of github-action-benchmark's `customSmallerIsBetter`: name, unit, value, range."""
    return [
        {
            "name": f"{cell.model or cell.model_sha256[:12]} {_where(cell)}",
            "unit": "ms",
            "value": cell.p50_ms,
            "range": f"{cell.p50_ci_ms[0]:.4g}–{cell.p50_ci_ms[1]:.4g}" if cell.p50_ci_ms else "",
        }
        for cell in document.cells
        if cell.p50_ms is not None
    ]
