"""Bench documents as CSV."""

import csv
import io

from farm.contract.document import Cell, Document

COLUMNS = (
    *("id", "block", "node", "status", "model", "model_sha256", "opset", "runtime", "provider", "batch", "precision"),
    *("threads", "hardware", "concurrency", "p50_ms", "mean_ms", "std_ms", "min_ms", "max_ms", "p90_ms", "p95_ms"),
    *("p99_ms", "throughput", "session_ms", "first_ms", "peak_memory_bytes", "is_stable", "disturbed_samples"),
)
EXTRA = ("reason_code", "reason_text", "active_providers", "parity", "shapes")
# a spreadsheet takes a text that begins so for a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(document: Document) -> str:
    """A line a cell, absent values empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*COLUMNS, *EXTRA])
    writer.writerows(_line(cell) for cell in document.cells)
    return text.getvalue()


def _line(cell: Cell) -> list[object]:
    values = [getattr(cell, column) for column in COLUMNS]
    reason = (cell.reason.code, cell.reason.text) if cell.reason else ("", "")
    shapes = " ".join(f"{name}={size}" for name, size in cell.shapes.items())
    extra = [*reason, " ".join(cell.active_providers), cell.parity.verdict, shapes]
    return [_safe(value) for value in [*values, *extra]]


def _safe(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
