"""Settings of a matrix with a meaning of their own: minutes that are a scenario, the wished change, own tolerances."""

from collections.abc import Mapping

from farm.contract.blocks import Tolerance
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.scenarios import LEAST_MINUTES, MOST_MINUTES

# smaller wishes are under what one number can tell apart
LEAST_WISH = 0.0001
MOST_TOLERANCES = 64
_TOLERANCE = {"type": "number", "minimum": 0}

SCHEMAS: Mapping[str, object] = {
    "sustained": {"type": "number", "minimum": LEAST_MINUTES, "maximum": MOST_MINUTES},
    "wish": {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": r"^[0-9]+([.][0-9]+)? ?%$"},
        ]
    },
    # outputs by name: an absolute tolerance, or both
    "tolerance": {
        "type": "object",
        "maxProperties": MOST_TOLERANCES,
        "additionalProperties": {
            "anyOf": [
                _TOLERANCE,
                {
                    "type": "object",
                    "properties": {"atol": _TOLERANCE, "rtol": _TOLERANCE},
                    "additionalProperties": False,
                },
            ]
        },
    },
}


def with_scenario(keys: Mapping[str, object]) -> dict[str, object]:
    """The keys with `sustained: MINUTES` as the scenario that it is. Raises MatrixProblem where both are written."""
    minutes = keys.get("sustained")
    if minutes is not None and "scenario" in keys:
        raise MatrixProblem(
            "sustained is a scenario: write `sustained: MINUTES` among those of `scenario`, or leave it out."
        )
    others = {name: value for name, value in keys.items() if name != "sustained"}
    return others if minutes is None else {**others, "scenario": [{"sustained": minutes}]}


def read_wish(written: object) -> float | None:
    """A change as a fraction, written `3%` or 0.03; None where nothing is written. Raises MatrixProblem."""
    if written is None:
        return None
    text = written.strip() if isinstance(written, str) else ""
    change = _number(text.removesuffix("%").strip() if text.endswith("%") else written)
    change = change / 100.0 if change is not None and text.endswith("%") else change
    if change is None or not LEAST_WISH <= change < 1.0:
        raise MatrixProblem(f"wish is {written!r}: write the change to be seen, such as 3% or 0.03, under 100%.")
    return change


def read_tolerances(written: object) -> dict[str, Tolerance]:
    """Tolerances of single outputs by name; what of a pair is left out is 0. Raises MatrixProblem."""
    if written is None:
        return {}
    if not isinstance(written, Mapping) or len(written) > MOST_TOLERANCES:
        raise MatrixProblem(
            f"tolerance is {written!r}: write outputs and their tolerances, such as `y: {{atol: 0.001, rtol: 0.01}}`."
        )
    return {str(name): _read_tolerance(str(name), one) for name, one in written.items()}


def _read_tolerance(name: str, written: object) -> Tolerance:
    given = written if isinstance(written, Mapping) else {"atol": written}
    numbers = {key: _number(value) for key, value in given.items()}
    if not numbers or not set(numbers) <= {"atol", "rtol"} or any(n is None or n < 0 for n in numbers.values()):
        raise MatrixProblem(
            f"The tolerance of the output {name!r} is {written!r}: write an absolute one, such as 0.001, or "
            "{atol: 0.001, rtol: 0.01}."
        )
    return Tolerance(atol=numbers.get("atol") or 0.0, rtol=numbers.get("rtol") or 0.0)


def _number(written: object) -> float | None:
    """The finite number that is written, also as text; None for anything else."""
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        number = float(written)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None
