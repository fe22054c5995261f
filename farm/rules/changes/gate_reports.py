"""Renders a gate's answer: a sentence and Markdown for people, JUnit XML and benchmark entries for programs."""

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.changes.gate import GateAnswer, cell_label, point_label, setting_label
from farm.rules.comparing.sides import comparison_between, index_by_sides
from farm.rules.presenting import metric_changes
from farm.rules.presenting.explanations import explain_change
from farm.rules.presenting.lines import make_comparison_line
from farm.rules.presenting.markdown import escape_text
from farm.rules.presenting.times import Times
from farm.rules.wording.numbers import counted

# how sentences describe comparisons that were not judged or not decided, by check
_OPEN_CHECKS = {"unjudged": "with outputs that differ and were not judged", "undecided": "undecided"}
NOTHING = "Nothing was compared: no pair of cells ran on both sides."
# characters that XML 1.0 cannot hold
_UNPRINTABLE = {code: None for code in range(32) if chr(code) not in "\t\n\r"}


def describe_answer(answer: GateAnswer) -> str:
    """Say in one sentence whether the gate passed, failed or could not be measured, and on how many comparisons."""
    if answer.infra:
        return f"The gate could not be measured: {answer.infra[0]}"
    if not answer.compared:
        return " ".join(["The gate failed.", NOTHING, *answer.unmeasured[:1]])
    if answer.is_passed:
        return f"The gate passed: {counted(answer.compared, 'comparison')}, no failures{_describe_open(answer)}."
    failures = counted(len(answer.failures), "finding")
    failed_pairs = len({(finding.baseline, finding.candidate) for finding in answer.failures})
    share = f"{failed_pairs} of " if failed_pairs < len(answer.pairs) else ""
    return f"The gate failed: {failures} in {share}{counted(len(answer.pairs), 'comparison')}."


def _describe_open(answer: GateAnswer) -> str:
    """Count the candidates that are undecided or unjudged, after `, but`; empty where there are none.

    A gate that passes because its time ran out does not prove that nothing changed.
    """
    parts = [
        f"{len(candidates)} {words}, which --fail-on {check} would count as a failure"
        for check, words in _OPEN_CHECKS.items()
        if (candidates := {finding.candidate for finding in answer.findings if finding.check == check})
    ]
    return f", but {', and '.join(parts)}" if parts else ""


def as_markdown(answer: GateAnswer, document: Document) -> str:
    """Render a summary in Markdown, as for a pipeline's job page: verdict, table of comparisons, table of findings."""
    mark = "✅" if answer.is_passed else "❌"
    is_unjudged = answer.is_passed and any(finding.check == "unjudged" for finding in answer.findings)
    unjudged = "; outputs differ and were not judged" if is_unjudged else ""
    lines = [f"## {mark} onnxfarm gate: {answer.verdict}{unjudged}", "", escape_text(describe_answer(answer)), ""]
    if document.sentence:
        lines += [escape_text(document.sentence), ""]
    lines += _render_comparisons(answer, document)
    if answer.findings:
        lines += [format_findings(answer), ""]
    if document.url:
        lines += [f"[The run]({document.url})", ""]
    return "\n".join(lines)


def format_findings(answer: GateAnswer) -> str:
    """Render a Markdown table of the findings, with whether each fails the gate; empty where there are none."""
    rows = [
        f"| {finding.check} | {'yes' if finding in answer.failures else 'no'} | {escape_text(finding.text)} |"
        for finding in answer.findings
    ]
    return "\n".join(["| check | fails the gate | finding |", "|---|---|---|", *rows]) if rows else ""


def as_junit(answer: GateAnswer, document: Document) -> str:
    """Render JUnit XML: a test case for each pair and each check in `fail_on`, which fails if a finding of it does.

    The case of `slower` is skipped where it does not fail and anything of its pair is undecided.
    Where nothing was compared, one more test case fails for that reason; where `infra` has a reason, it has an error.
    """
    cells = {cell.id: cell for cell in document.cells}
    cases = [
        _render_case(check, pair, answer, label=cell_label(cells[pair[1]]))
        for pair in answer.pairs
        for check in answer.fail_on
    ]
    if answer.infra or not answer.compared:
        nothing = f"<{'error' if answer.infra else 'failure'} message={_quote(describe_answer(answer))}/>"
        cases.append(f'  <testcase classname="onnxfarm.gate" name="compared">{nothing}</testcase>')
    tags = {"failures": "<failure", "errors": "<error", "skipped": "<skipped"}
    attributes = " ".join(f'{name}="{sum(tag in case for case in cases)}"' for name, tag in tags.items())
    opening = f'<testsuite name="onnxfarm gate" tests="{len(cases)}" {attributes}>'
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', opening, *cases, "</testsuite>"]) + "\n"


def as_benchmark_entries(answer: GateAnswer, document: Document) -> list[dict[str, object]]:
    """Make entries of github-action-benchmark's `customSmallerIsBetter`: name, unit, value, range, extra.

    Each compared pair has its ratio, which may be followed over time because both sides were in the same block. Each
    measured side has its latency. Names contain no version, so that later calls continue the same line.
    """
    times = Times.of(document.cells, document.comparisons)
    cells = {cell.id: times.with_compared_time(cell) for cell in document.cells}
    comparisons = {(pair.baseline, pair.candidate): pair for pair in _list_comparisons(answer, document)}
    entries: list[dict[str, object]] = []
    for sides in answer.pairs:
        old, new = (cells[side] for side in sides)
        point = f"{new.model or new.model_sha256[:12]}, {point_label(new)}"
        if pair := comparisons.get(sides):
            entries.append(_make_ratio_entry(point, pair, old=old, new=new))
            old, new = _set_compared_medians(pair, old, new)
        measured = [(side, cell) for side, cell in (("baseline", old), ("candidate", new)) if cell.p50_ms is not None]
        entries += [_make_latency_entry(point, side, cell, times.title([cell], clock="")) for side, cell in measured]
    return entries


def _set_compared_medians(pair: Comparison, *sides: Cell) -> list[Cell]:
    """Return both sides with the medians over the rounds that the verdict rests on, as the summary shows them."""
    change = None if pair.verdict_from == "rate" else metric_changes.find_headline_change(pair)
    if change is None:
        return list(sides)
    with_medians = []
    for cell, p50_ms in zip(sides, (change.baseline, change.candidate), strict=True):
        # the cell's interval is over all its launches, so it fits only a verdict over as many rounds
        interval = cell.p50_ci_ms if pair.rounds == len(cell.samples_ms) else None
        with_medians.append(cell.model_copy(update={"p50_ms": p50_ms, "p50_ci_ms": interval}))
    return with_medians


def _make_ratio_entry(point: str, pair: Comparison, *, old: Cell, new: Cell) -> dict[str, object]:
    return {
        "name": f"{point}: candidate / baseline",
        "unit": "ratio",
        "value": pair.ratio,
        "range": "" if pair.ci_low is None else f"{pair.ci_low:.4g}–{pair.ci_high:.4g}",
        "extra": f"{old.runtime} → {new.runtime}: {pair.verdict}",
    }


def _make_latency_entry(point: str, side: str, cell: Cell, time: str) -> dict[str, object]:
    interval = f"{cell.p50_ci_ms[0]:.4g}–{cell.p50_ci_ms[1]:.4g}" if cell.p50_ci_ms else ""
    return {
        "name": f"{point}: {side}",
        "unit": "ms",
        "value": cell.p50_ms,
        "range": interval,
        "extra": ", ".join(filter(None, (str(cell.runtime), time))),
    }


def _list_comparisons(answer: GateAnswer, document: Document) -> Iterator[Comparison]:
    """Yield the gate's comparisons that have figures."""
    comparisons = index_by_sides(document.comparisons)
    for baseline, candidate in answer.pairs:
        comparison = comparison_between(comparisons, baseline, candidate)
        if comparison is not None and comparison.ratio is not None:
            yield comparison


def _render_comparisons(answer: GateAnswer, document: Document) -> list[str]:
    cells = {cell.id: cell for cell in document.cells}
    rows: list[list[str]] = []
    for pair in _list_comparisons(answer, document):
        line = make_comparison_line(pair, cells)
        setting = setting_label(cells[pair.baseline], cells[pair.candidate])
        values = [f"{value} {line.unit}" for value in line.sides or ()] or ["", ""]
        verdict = [line.words, line.change.interval, str(line.rounds), explain_change(pair) or line.why]
        rows.append([setting, line.quantity, *values, *verdict])
    if not rows:
        return []
    old, new = (cells[side] for side in answer.pairs[0])
    names = ["base", "candidate"] if old.runtime == new.runtime else [str(old.runtime), str(new.runtime)]
    heads = ["cell", "of", *names, "verdict", "interval", "rounds", "because"]
    lines = [heads, ["---"] * len(heads), *rows]
    return [*("| " + " | ".join(map(escape_text, line)) + " |" for line in lines), ""]


def _render_case(check: str, pair: tuple[str, str], answer: GateAnswer, *, label: str) -> str:
    """Render one check of one pair as a test case."""
    findings = [finding for finding in answer.findings if (finding.baseline, finding.candidate) == pair]
    failures = [finding.text for finding in findings if finding.check == check and finding in answer.failures]
    opening = f"  <testcase classname={_quote(f'onnxfarm.{check}')} name={_quote(label)}"
    if failures:
        text = escape("\n".join(failures).translate(_UNPRINTABLE))
        return f"{opening}><failure message={_quote(failures[0])}>{text}</failure></testcase>"
    undecided = [finding.text for finding in findings if finding.check == "undecided"]
    if check == "slower" and undecided:
        return f"{opening}><skipped message={_quote(undecided[0])}/></testcase>"
    return f"{opening}/>"


def _quote(text: str) -> str:
    return quoteattr(text.translate(_UNPRINTABLE))
