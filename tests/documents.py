"""Cells, comparisons and documents of a bench, as tests make them up."""

from typing import Any

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.document_comparisons import Comparison

OLD, NEW = "onnxruntime==1.29.0", "onnxruntime==1.31.1"
CPU = "CPUExecutionProvider"


def make_cell(name: str = "c1", **changes: Any) -> Cell:
    """A cell that is done; it has a latency and whatever else was measured only where `changes` say so."""
    known = {
        "id": name, "digest": name, "model": "encoder", "model_sha256": "a" * 64, "runtime": OLD, "provider": CPU,
        "batch": 1, "precision": "fp32", "threads": 1, "status": "done",
    }  # fmt: skip
    return Cell.model_validate(known | changes)


def make_comparison(verdict: str = "slower", ratio: float | None = 1.24, **changes: Any) -> Comparison:
    """What c2 has against c1 over eight rounds; its interval is the ratio itself where `changes` say no other."""
    known = {
        "baseline": "c1", "candidate": "c2", "axis": "runtime", "verdict": verdict, "ratio": ratio, "ci_low": ratio,
        "ci_high": ratio, "ci_level": 0.95, "rounds": 8, "margin": 0.02,
    }  # fmt: skip
    return Comparison.model_validate(known | changes)


def make_document(*cells: Cell, comparisons: list[Comparison] | None = None, **changes: Any) -> Document:
    return Document(machine={}, seed=0, cells=list(cells), comparisons=comparisons or [], **changes)
