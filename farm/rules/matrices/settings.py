"""Settings of a matrix that are numbers with a meaning of their own: sustained minutes, and the wished change."""

from collections.abc import Mapping
from typing import Any

from farm.rules.matrices.matrix_text import MatrixProblem
from farm.rules.sustained import LEAST_MINUTES, MOST_MINUTES

# smaller wishes are under what one number can tell apart
LEAST_WISH = 0.0001

SCHEMAS: Mapping[str, Any] = {
    "sustained": {"type": "number", "minimum": LEAST_MINUTES, "maximum": MOST_MINUTES},
    "wish": {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": r"^[0-9]+([.][0-9]+)? ?%$"},
        ]
    },
}


def read_sustained(written: Any) -> float | None:
    """Minutes; None where nothing is written. Raises MatrixProblem."""
    if written is None:
        return None
    minutes = _number(written)
    if minutes is None or not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise MatrixProblem(
            f"sustained is {written!r}: write minutes from {LEAST_MINUTES:g} to {MOST_MINUTES:g}, such as 10."
        )
    return minutes


def read_wish(written: Any) -> float | None:
    """A change as a fraction, written `3%` or 0.03; None where nothing is written. Raises MatrixProblem."""
    if written is None:
        return None
    text = written.strip() if isinstance(written, str) else ""
    change = _number(text.removesuffix("%").strip() if text.endswith("%") else written)
    change = change / 100.0 if change is not None and text.endswith("%") else change
    if change is None or not LEAST_WISH <= change < 1.0:
        raise MatrixProblem(f"wish is {written!r}: write the change to be seen, such as 3% or 0.03, under 100%.")
    return change


def _number(written: Any) -> float | None:
    """The finite number that is written, also as text; None for anything else."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        number = float(written)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
