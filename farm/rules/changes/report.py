"""Renders a report for an issue tracker: all that is needed to repeat a measured change elsewhere.

model/            the model as it was measured, with its external data
inputs.npz        its inputs
repeat.py         repeats the measurement by `python repeat.py`
repeat.json       the settings that repeat.py measures with
lock-*.txt        the packages of both sides
matrix.json       the same settings for `onnxfarm bench`
document.json     the measurement: both cells, their samples, the comparison with its operators
timings-*.csv     every timing
facts.json        the machine
issue.md          a text for the runtime's issue tracker
"""

import json
from dataclasses import dataclass
from importlib import resources

from farm.contract.cells import CellSpec
from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison
from farm.rules.cells.axes import BY_NAME, FIELD_AXES
from farm.rules.cells.matrices import PlainMatrix, axis_values
from farm.rules.cells.session_sets import OPTIONS, session_set_of
from farm.rules.cells.values import to_plain
from farm.rules.comparing.sides import find_comparison
from farm.rules.findings import cell_pairs
from farm.rules.findings.kinds import kind_of
from farm.rules.presenting import metric_changes
from farm.rules.presenting.changed_operators import (
    describe_largest_type,
    describe_order,
    format_operator_change,
    format_operator_sides,
    list_named_operators,
)
from farm.rules.presenting.explanations import explain_change
from farm.rules.presenting.lines import ComparisonLine, make_comparison_line
from farm.rules.presenting.markdown import escape_text, format_code_span
from farm.rules.presenting.session_code import LEVELS
from farm.rules.reporting.locks import make_lock
from farm.rules.runtimes import providers
from farm.rules.runtimes.order import is_downgrade
from farm.rules.wording import numbers, titles
from farm.rules.wording.vocabulary import is_change

SIDES = ("old", "new")
MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}
# session settings that repeat.py sets; it names those that it leaves out
_REPEATED_SETTINGS = {*OPTIONS, "threads", "optimization", "call"}
MAX_OPERATORS = 10
# metrics that the table shows even where they are equal
_ALWAYS_SHOWN = ("session_ms", "peak_memory_bytes")
# where the model and its inputs lie in the report
MODEL_FOLDER = "model"
INPUTS = "inputs.npz"
COMMAND = "python repeat.py"


@dataclass(frozen=True)
class Case:
    """Two cells that differ in the runtime, and the change to report."""

    document: Document
    old: Cell
    new: Cell
    # the settings of the new cell
    spec: CellSpec
    # the name of the .onnx file in MODEL_FOLDER
    model: str
    # what changed, in a sentence
    sentence: str
    # in which newer release the change was measured again, in sentences; or empty
    still: str = ""
    # what searches found, in sentences: the release since which the change exists, and a work-around; or empty
    since: str = ""
    work_around: str = ""
    # Python code that applies the work-around
    code: str = ""
    # the kind of the alert's change; empty where the report is not about an alert
    kind: str = ""

    @property
    def comparison(self) -> Comparison | None:
        return find_comparison(self.document, self.old.id, self.new.id)


def render_files(case: Case) -> dict[str, str]:
    """Render the report's text files, by name; the model, its inputs and the timings are not among them."""
    return {
        "README.md": render_readme(case),
        "issue.md": render_issue(case),
        "repeat.py": resources.files("farm.rules.changes").joinpath("repeat_script.py").read_text(encoding="utf-8"),
        "repeat.json": _render_json(_make_settings(case)),
        "lock-old.txt": make_lock(case.old),
        "lock-new.txt": make_lock(case.new),
        "matrix.json": _render_json(_make_matrix(case)),
        "document.json": _reduce_document(case).to_json() + "\n",
        "facts.json": _render_json(dict(case.document.machine)),
    }


def report_name(case: Case) -> str:
    """Make the name of the report's zip file: `report-encoder-1.29.0-1.31.1.zip`.

    In the model's name, whatever is no letter or digit becomes `-`.
    """
    sides = (case.old.runtime.version, case.new.runtime.version)
    model = "".join(char if char.isalnum() else "-" for char in case.new.model or "model")
    return f"report-{model}-{sides[0]}-{sides[1]}.zip"


def timings_name(side: str) -> str:
    return f"timings-{side}.csv"


def render_readme(case: Case) -> str:
    """Render README.md: what the report holds, and how to repeat the measurement."""
    return (
        f"# {case.old.runtime} → {case.new.runtime}\n\n{escape_text(case.sentence)}\n\n"
        f"Repeat it on your machine, with Python ≥ 3.11 and a package index:\n\n    {COMMAND}\n\n"
        "It installs both runtimes from lock-old.txt and lock-new.txt beside itself, then measures them side by side, "
        "a fresh process each, and says how far their outputs are apart. "
        f"Measured before: {escape_text(_describe_change(case))}.\n\n"
        f"Or with onnxfarm, which also judges outputs against the reference and traces operators:\n\n"
        f"    onnxfarm bench {MODEL_FOLDER}/{case.model} --matrix matrix.json --inputs {INPUTS}\n\n"
        "document.json holds the samples, the comparison and its operators; timings-*.csv every timing; facts.json the "
        "machine; issue.md a text for the tracker.\n"
    )


def render_issue(case: Case) -> str:
    """Render issue.md for ONNX Runtime's tracker, under the headings of its form."""
    machine, options = case.document.machine, json.dumps(case.new.provider_options)
    parts = [
        f"# {_make_title(case)}",
        "### Describe the issue",
        escape_text(case.sentence),
        *([escape_text(case.still)] if case.still else []),
        *_render_sides(case),
        *_render_operators(case),
        *([f"**Since when.** {escape_text(case.since)}"] if case.since else []),
        *([f"**Work-around.** {escape_text(case.work_around)}"] if case.work_around else []),
        *([f"```python\n{case.code}\n```"] if case.code else []),
        "### To reproduce",
        f"Unpack the attached zip and run `{COMMAND}`: it installs both versions from its lock files and measures them "
        "side by side, a fresh process each, in random order.",
        "### Urgency",
        "_No response_",
        "### Platform and OS version",
        _format_code(machine.get("os")),
        "### ONNX Runtime installation, version and API",
        f"Released package, {case.new.runtime} (good: {case.old.runtime}), Python",
        "### Architecture and CPU",
        _format_code(", ".join(str(part) for part in (machine.get("arch"), machine.get("cpu_model")) if part)),
        "### Execution provider",
        f"{case.new.provider}{f' {format_code_span(options)}' if case.new.provider_options else ''}, "
        f"{case.new.threads} intra-op threads, graph optimization level `{case.new.optimization}`",
        "### Model file and quantization",
        f"`{MODEL_FOLDER}/{case.model}` in the zip, opset {case.new.opset}, {BY_NAME['precision'].label(case.new)}"
        f"{'' if case.new.batch is None else f', batch {case.new.batch}'}",
    ]
    return "\n\n".join(parts) + "\n"


def _make_title(case: Case) -> str:
    """Make the issue's title: `[Performance]` for a slower latency, or else `[Regression]` unless `new` is older."""
    sides = f"{case.new.runtime} compared with {case.old.runtime.version}"
    comparison, is_headline = case.comparison, not case.kind or kind_of(case.kind).is_headline
    if is_headline and comparison is not None and comparison.verdict == "slower" and comparison.ratio is not None:
        size = numbers.change(comparison.ratio, comparison.ci_low, comparison.ci_high)
        return f"[Performance] {size}: {sides}, {escape_text(cell_pairs.series_label(case.new))}"
    title = "" if is_downgrade(case.old.runtime.version, case.new.runtime.version) else "[Regression] "
    if case.kind:
        title += f"{kind_of(case.kind).title.word}: "
    return f"{title}{sides}: {escape_text(cell_pairs.series_label(case.new))}"


def _describe_change(case: Case) -> str:
    """Describe the measured change with its interval, rounds and timed call, or repeat the case's sentence."""
    line = _make_line(case)
    if line is None or line.change.figures is None:
        return case.sentence.rstrip(".")
    change = line.change.text if line.change.is_decided else line.change.word
    return f"{change} ({line.details}; timed by {titles.CALLS[case.spec.session.call]})"


def _make_line(case: Case) -> ComparisonLine | None:
    cells = {cell.id: cell for cell in (case.old, case.new)}
    return None if case.comparison is None else make_comparison_line(case.comparison, cells)


def _render_sides(case: Case) -> list[str]:
    """Render a table of both sides with the metrics that have a verdict, since two values alone prove nothing."""
    line = _make_line(case)
    sides = [f"{value} {line.unit}" for value in line.sides] if line and line.sides else ["", ""]
    if line is None:
        sides = [
            "" if cell.p50_ms is None else numbers.latency(cell.p50_ms, cell.p50_ci_ms) for cell in (case.old, case.new)
        ]
    columns = {line.quantity if line else "p50 latency": tuple(sides)}
    for change in [] if case.comparison is None else metric_changes.list_displayed_changes(case.comparison):
        is_shown = is_change(change.verdict) or (change.verdict == "equal" and change.name in _ALWAYS_SHOWN)
        if is_shown and (values := metric_changes.format_sides(change)) is not None:
            columns[f"{metric_changes.title(change)}: {change.verdict}"] = values
    columns["parity"] = (_describe_parity(case.old), _describe_parity(case.new))
    rows = [f"| | {' | '.join(columns)} |", f"|{'---|' * (len(columns) + 1)}"]
    for side, cell in enumerate((case.old, case.new)):
        rows.append(f"| {cell.runtime} | {' | '.join(values[side] for values in columns.values())} |")
    table = "\n".join(rows)
    return [table] if case.comparison is None else [table, f"Change: {escape_text(_describe_change(case))}."]


def _describe_parity(cell: Cell) -> str:
    if cell.status == "done":
        return escape_text(cell.parity.verdict.replace("_", " "))
    return escape_text(f"{cell.status}: {cell.reason.text}" if cell.reason is not None else cell.status)


def _render_operators(case: Case) -> list[str]:
    """Render the operators that explain most of the change, by the model's own nodes; none where nothing changed."""
    comparison = case.comparison
    if comparison is None or not comparison.operators or not is_change(comparison.verdict):
        return []
    heads = ["operator", "node", "old, µs", "new, µs", "share of the change", "by its own pairs"]
    is_judged = any(operator.verdict for operator in comparison.operators)
    columns = len(heads) if is_judged else len(heads) - 1
    rows = [f"| {' | '.join(heads[:columns])} |", f"|{'---|' * columns}"]
    operators = list_named_operators(comparison)[:MAX_OPERATORS]
    for operator in operators:
        share = "" if operator.share is None else numbers.share(operator.share)
        times = format_operator_sides(operator) or ("", "")
        verdict = format_operator_change(operator) if is_change(operator.verdict) else operator.verdict or ""
        row = [escape_text(operator.op_type), format_code_span(operator.node), *times, share, verdict]
        rows.append(f"| {' | '.join(row[:columns])} |")
    explanation = explain_change(comparison) or describe_largest_type(comparison)
    heading = (
        f"**Why.** {escape_text(explanation)}." if explanation else f"**Operators that {describe_order(comparison)}.**"
    )
    parts = [heading, "\n".join(rows)] if operators else [heading]
    return parts if explanation or operators else []


def _make_settings(case: Case) -> dict[str, object]:
    """Make repeat.json, with values as ONNX Runtime names them."""
    session = case.spec.session
    spinning = "1" if session.spinning else "0"
    spin = {f"session.{pool}.allow_spinning": spinning for pool in ("intra_op", "inter_op")}
    provider = providers.find(case.spec.provider)
    requested = providers.requested_list(provider) if provider is not None else (case.spec.provider,)
    options = case.spec.provider_options
    return {
        "model": case.model,
        "runtimes": dict(zip(SIDES, map(str, (case.old.runtime, case.new.runtime)), strict=True)),
        "providers": [[name, dict(options) if name == case.spec.provider else {}] for name in requested],
        "threads": session.threads,
        "inter_op_threads": session.inter_op_threads,
        "execution_mode": MODES[session.execution_mode],
        "optimization": LEVELS[session.optimization],
        "arena": session.arena,
        "memory_pattern": session.memory_pattern,
        "disabled_optimizers": list(session.disabled_optimizers),
        "config": {**spin, **session.config},
        "measured": _describe_change(case),
        **({"left_out": left_out} if (left_out := session.model_dump(mode="json", exclude=_REPEATED_SETTINGS)) else {}),
    }


def _make_matrix(case: Case) -> dict[str, PlainMatrix]:
    """Make matrix.json for `onnxfarm bench`; precision is fp32 since the report's model is the variant already."""
    point = axis_values(case.spec) | {"session": session_set_of(case.spec.session, name="as measured")}
    axes = [
        axis.name for axis in FIELD_AXES if axis.part == "session" or point[axis.name] != BY_NAME[axis.name].default
    ]
    declared: PlainMatrix = {axis: [to_plain(point[axis])] for axis in ("provider", "session", *axes)}
    return {"matrix": {**declared, "runtime": [str(case.old.runtime), str(case.new.runtime)], "precision": ["fp32"]}}


def _reduce_document(case: Case) -> Document:
    """Reduce the document to both cells and their comparison."""
    comparison = case.comparison
    return case.document.model_copy(
        update={
            "cells": [case.old, case.new],
            "comparisons": [] if comparison is None else [comparison],
            "sentence": case.sentence,
        }
    )


def _format_code(text: object) -> str:
    return format_code_span(str(text)) if text else "not known"


def _render_json(plain: object) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
