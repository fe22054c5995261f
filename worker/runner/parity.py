"""Compares outputs with their references. It only measures differences; the farm judges them."""

import numpy as np

# of any shape and element type
Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

# dtypes whose equality is exact; everything else is compared within tolerance
_EXACT_KINDS = "biuOSU"
# the minimum tolerance of 16-bit types: eight units in the last place
_MIN_TOLERANCE = {"float16": 2**-7, "bfloat16": 2**-4}
# stands for minus infinity in masked scores
_MASKED = -10_000.0


def compare_output(
    name: str, value: object, reference: Array | None, *, atol: float, rtol: float, is_absolute: bool = False
) -> dict[str, object]:
    """Compare one output with its reference; return the fields of the contract's OutputParity.

    `atol` is a part of the reference's scale, and both tolerances are at least the precision of a 16-bit output,
    unless `is_absolute`, as for those that the user gave. Differences are computed in float64, over the elements that
    are finite in both; NaN or infinity where the reference has another value is a violation. Relative differences are
    taken where the reference is not zero. Integers, booleans and texts must be equal. An output of another shape
    violates in every element. Nothing is compared without a reference, or for a value that is not an array.
    """
    if not isinstance(value, np.ndarray):
        # a sequence, a map or a type that numpy lacks is named, and not compared
        return {"name": name, "dtype": str(value), "shape": [], "elements": 0, "violations": 0}
    facts: dict[str, object] = {
        "name": name,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "elements": int(value.size),
        "nan_count": _count(np.isnan, value),
        "inf_count": _count(np.isinf, value),
    }
    if reference is None:
        return facts
    facts["reference_shape"] = list(reference.shape)
    if value.shape != reference.shape:
        return {**facts, "violations": max(1, int(value.size))}
    if value.dtype.kind in "OSU" or reference.dtype.kind in "OSU":
        return {**facts, "violations": int(np.count_nonzero(value.astype(str) != reference.astype(str)))}
    if not is_absolute:
        floor = _MIN_TOLERANCE.get(value.dtype.name, 0.0)
        atol, rtol = max(atol, floor) * compute_scale(reference), max(rtol, floor)
    return {**facts, **_measure(value, reference, atol=atol, rtol=rtol), "top1_agreement": _rate_top1(value, reference)}


def compute_scale(reference: Array) -> float:
    """Compute the scale of rounding errors: the root mean square of the finite values, at least 1.

    Two or more values near the lowest one, if it is below about -10,000, are masked scores and do not count.
    """
    wide = np.abs(reference).astype(np.float64) if reference.dtype.kind == "c" else reference.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    is_masked = finite <= 0.999 * min(finite.min(initial=0.0), _MASKED)
    if np.count_nonzero(is_masked) > 1:
        finite = finite[~is_masked]
    largest = np.max(np.abs(finite), initial=0.0)
    return max(1.0, float(largest * np.sqrt(np.mean(np.square(finite / largest))))) if largest > 1 else 1.0


def measure_largest_difference(first: Array, second: Array) -> float | None:
    """Measure the largest finite absolute difference of two arrays.

    None for different shapes, empty arrays, texts or objects, and where no difference is finite.
    """
    if first.shape != second.shape or first.size == 0 or first.dtype.kind in "OSU":
        return None
    difference = np.abs(first.astype(np.float64) - second.astype(np.float64))
    finite = difference[np.isfinite(difference)]
    return float(finite.max()) if finite.size else None


def summarise_values(value: Array) -> dict[str, object]:
    """Summarise the finite values by range, mean and standard deviation, and count the others.

    Without finite values, there are only the counts.
    """
    wide = value.astype(np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    facts: dict[str, object] = {"nan_count": _count(np.isnan, value), "inf_count": _count(np.isinf, value)}
    if finite.size:
        with np.errstate(all="ignore"):
            figures = {"minimum": finite.min(), "maximum": finite.max(), "mean": finite.mean(), "std": finite.std()}
        facts |= {name: _drop_infinite(number) for name, number in figures.items()}
    return facts


def locate_largest_difference(value: Array, reference: Array) -> dict[str, object] | None:
    """Locate the element where two arrays are furthest apart, with both values; None where nothing is comparable."""
    if value.shape != reference.shape or value.size == 0 or reference.dtype.kind in "OSU":
        return None
    new, old = value.astype(np.float64), reference.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.where(np.isfinite(new) & np.isfinite(old), np.abs(new - old), -1.0)
    index = np.unravel_index(int(np.argmax(gap)), gap.shape)
    if gap[index] < 0:
        return None
    return {"index": [int(at) for at in index], "candidate": float(new[index]), "reference": float(old[index])}


def are_bit_equal(first: object, second: object) -> bool:
    """Say whether two outputs are the same to the last bit; NaN equals NaN of the same bits.

    Arrays of objects, and outputs that are not arrays, are compared by `==`.
    """
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray)):
        return bool(first == second)
    if first.dtype.kind == "O":
        return first.shape == second.shape and bool(np.all(first == second))
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def _measure(value: Array, reference: Array, *, atol: float, rtol: float) -> dict[str, object]:
    new, old = value.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
    both = np.isfinite(new) & np.isfinite(old)
    with np.errstate(all="ignore"):
        gap = np.abs(new - old)
        if value.dtype.kind in _EXACT_KINDS and reference.dtype.kind in _EXACT_KINDS:
            beyond = value.ravel() != reference.ravel()
        else:
            same_odd = (np.isnan(new) & np.isnan(old)) | (np.isinf(old) & (new == old))
            beyond = np.where(both, gap > atol + rtol * np.abs(old), ~same_odd)
    if not both.any():
        return {"violations": int(np.count_nonzero(beyond))}
    gap, new, old = gap[both], new[both], old[both]
    nonzero = old != 0
    with np.errstate(all="ignore"):
        relative = float(np.max(gap[nonzero] / np.abs(old[nonzero]))) if nonzero.any() else None
        rmse = _drop_infinite(np.sqrt(np.mean(np.square(gap))))
    return {
        "max_abs": float(gap.max()),
        "max_rel": relative if relative is None or np.isfinite(relative) else None,
        "rmse": rmse,
        "cosine": _compute_cosine(new, old),
        "violations": int(np.count_nonzero(beyond)),
    }


def _compute_cosine(new: Array, old: Array) -> float | None:
    """Compute the cosine between two vectors: 1 for two zero vectors, None where only one is zero."""
    # scale first, so that the squares of large values stay finite
    top_new, top_old = np.max(np.abs(new)), np.max(np.abs(old))
    if top_new == 0 and top_old == 0:
        return 1.0
    if top_new == 0 or top_old == 0:
        return None
    first, second = new / top_new, old / top_old
    cosine = float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
    return max(-1.0, min(1.0, cosine))


def _rate_top1(value: Array, reference: Array) -> float | None:
    """Compute the share of rows whose largest score is at the same place; None for outputs of another shape."""
    is_scores = value.ndim == 2 and value.shape[1] > 1 and value.shape[0] > 0 and value.dtype.kind == "f"
    if not is_scores or np.isnan(value).any() or np.isnan(reference).any():
        return None
    return float(np.mean(np.argmax(value, axis=1) == np.argmax(reference, axis=1)))


def _count(predicate: np.ufunc, value: Array) -> int:
    return int(np.count_nonzero(predicate(value))) if value.dtype.kind in "fc" else 0


def _drop_infinite(number: np.floating) -> float | None:
    return float(number) if np.isfinite(number) else None
