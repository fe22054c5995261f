"""The engines pass: compares the outputs that the checks of a block's arms wrote to files. It opens no session."""

from worker.runner import parity
from worker.runner.arrays import Arrays, load_arrays
from worker.runner.order import Order, Pair, PhaseTimer

# elements that are compared in one pass, which takes a second or two
MAX_ELEMENTS = 50_000_000


def compare_engines(order: Order, *, timer: PhaseTimer, max_elements: int = MAX_ELEMENTS) -> dict[str, object]:
    """Compare the outputs of the order's pairs of arms, up to `max_elements` elements in all, smallest pairs first.

    Return the comparisons under `pairs`. The first pair that would exceed the limit and all larger ones are not
    compared, and their number is `left_out`. Raises Refusal for a file of outputs that cannot be read.
    """
    loaded: dict[str, Arrays] = {}
    with timer.phase("pairs"):
        for pair in order.pairs:
            for path in (pair["one_path"], pair["other_path"]):
                loaded[path] = loaded[path] if path in loaded else load_arrays(path)
        ranked = sorted(order.pairs, key=lambda pair: _count_elements(loaded[pair["other_path"]]))
        compared: list[dict[str, object]] = []
        remaining_elements = max_elements
        for pair in ranked:
            remaining_elements -= _count_elements(loaded[pair["other_path"]])
            if remaining_elements < 0:
                break
            compared.append(_compare_pair(pair, loaded[pair["one_path"]], loaded[pair["other_path"]]))
    return {"pairs": compared, "left_out": len(ranked) - len(compared)}


def _compare_pair(pair: Pair, first: Arrays, other: Arrays) -> dict[str, object]:
    names = _pair_names(list(first), list(other)) if pair["is_by_order"] else {name: name for name in first}
    outputs = []
    for name, value in other.items():
        atol, rtol = pair["own"].get(name, (pair["atol"], pair["rtol"]))
        reference = first.get(names.get(name, ""))
        parity_fields = parity.compare_output(
            name, value, reference, atol=atol, rtol=rtol, is_absolute=name in pair["own"]
        )
        is_renamed = reference is not None and names[name] != name
        outputs.append({**parity_fields, "reference_name": names[name]} if is_renamed else parity_fields)
    return {"one": pair["one"], "other": pair["other"], "outputs": outputs}


def _pair_names(first: list[str], second: list[str]) -> dict[str, str]:
    """Pair each output of the second with one of the first: by name, then the rest in their order."""
    unpaired_first = [name for name in first if name not in second]
    unpaired_second = [name for name in second if name not in first]
    return {name: name for name in second if name in first} | dict(zip(unpaired_second, unpaired_first, strict=False))


def _count_elements(arrays: Arrays) -> int:
    return sum(array.size for array in arrays.values())
