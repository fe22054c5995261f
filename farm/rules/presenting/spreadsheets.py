"""Writes bench documents as CSV for spreadsheets, and as rows for other formats.

Each cell of the document has a row, in its order, refused cells and A/A copies too. A row of `list_rows` has the raw
value of each of HEADS.
"""

import csv
import io

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.rules.cells import axes, metrics

# A spreadsheet runs a text as a formula if it begins with one of these (OWASP, "CSV Injection").
FORMULA_MARKS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = (
    *("id", "block", "node", "status", "model", "model_sha256", "opset", "runtime", "provider", "batch", "precision"),
    *("threads", "hardware", "concurrency", "p50_ms", "mean_ms", "std_ms", "min_ms", "max_ms", "p90_ms", "p95_ms"),
    *("p99_ms", "throughput", "session_ms", "first_ms", "peak_memory_bytes", "is_stable", "disturbed_samples"),
)
# columns that are empty where the model came without labelled data
ACCURACY = ("metric", "accuracy", "accuracy_low", "accuracy_high", "accuracy_samples", "accuracy_difference")
EXTRA = ("reason_code", "reason_text", "active_providers", "parity", "shapes", "model_bytes", *ACCURACY, "recipe")
# the axes and metrics of a cell that have no column above
AXES = tuple(axis for axis in axes.AXES if axis.name not in (*COLUMNS, *EXTRA))
METRICS = tuple(metric for metric in metrics.METRICS if metric.name not in (*COLUMNS, *EXTRA))
# Columns that later releases added stand last, so that the others keep their places.
LATER = ("call", "run_p50_ms", "bound_p50_ms", "cpu_throughput")
_VALUES_ORDER = (*COLUMNS, *EXTRA, *(axis.name for axis in AXES), *(metric.name for metric in METRICS))
HEADS = tuple(sorted(_VALUES_ORDER, key=LATER.__contains__))


def make_csv(document: Document) -> str:
    """Return the document as CSV: a line of HEADS, then a line for each cell; absent values are empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEADS)
    writer.writerows([escape_formula(value) for value in row.values()] for row in list_rows(document))
    return text.getvalue()


def list_rows(document: Document) -> list[dict[str, object]]:
    rows = (dict(zip(_VALUES_ORDER, _list_values(cell), strict=True)) for cell in document.cells)
    return [{head: row[head] for head in HEADS} for row in rows]


def _list_values(cell: Cell) -> list[object]:
    reason, judged = cell.reason, cell.accuracy
    values = [str(cell.runtime) if column == "runtime" else getattr(cell, column) for column in COLUMNS]
    values += [reason.code, reason.text] if reason else ["", ""]
    values += [" ".join(cell.active_providers), cell.parity.verdict, axes.format_pairs(cell.shapes), cell.model_bytes]
    if judged is None:
        values += [""] * len(ACCURACY)
    else:
        values += [judged.metric, judged.value, judged.ci_low, judged.ci_high, judged.n, judged.difference]
    return [*values, cell.recipe, *(axis.short(cell) for axis in AXES), *(metric.value(cell) for metric in METRICS)]


def escape_formula(value: object) -> object:
    """Return a value as it is written to CSV: None is empty, and a quote stands before a text that looks like a
    formula."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_MARKS) else value
