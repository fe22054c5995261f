"""What is unfair about the inputs of a model of `stranger.toml`, whose head says how sizes and values are written."""

import re
from typing import Any

import numpy as np

from farm.workshop.arrays import Array, Arrays


def unfair(wanted: dict[str, Any], given: Arrays) -> str:
    """An empty text: nothing. Each name stands for one size in all of a model's inputs."""
    inputs = wanted["inputs"]
    strangers = [f"{name} is fed, which the model lacks" for name in given if name not in inputs]
    missing = [f"{name} is not fed" for name in inputs if name not in given]
    shapes = {name: (inputs[name]["shape"], given[name].shape) for name in inputs if name in given}
    wrong = [name for name, (sizes, shape) in shapes.items() if len(sizes) != len(shape)]
    if strangers or missing or wrong:
        return "; ".join(
            strangers + missing + [f"{name} is {shapes[name][1]}, not {shapes[name][0]}" for name in wrong]
        )
    bound: dict[str, int] = {}
    for sizes, shape in shapes.values():
        for size, number in zip(map(str, sizes), shape, strict=True):
            if named := re.match(r"([a-z]+)(=|$)", size):
                bound.setdefault(named[1], number)
    named_sizes = [
        f"{name} is {bound[name]}, not {size}"
        for name, size in wanted.get("sizes", {}).items()
        if not fits(size, bound[name], bound)
    ]
    return "; ".join(
        named_sizes
        + [
            f"{name} is {'×'.join(map(str, shape))}, not {sizes}"
            for name, (sizes, shape) in shapes.items()
            if not all(fits(size, number, bound) for size, number in zip(sizes, shape, strict=True))
        ]
        + [
            f"{name} holds {', '.join(map(str, given[name].reshape(-1)[:6]))}, not {inputs[name]}"
            for name in shapes
            if not holds(inputs[name], given[name], bound)
        ]
    )


def fits(size: str | int, number: int, bound: dict[str, int]) -> bool:
    name, _, rest = str(size).rpartition("=")
    if name and bound[name] != number:
        return False
    limits, _, step = rest.partition("/")
    low, _, high = limits.partition("..")
    return add(low, bound) <= number <= add(high or low, bound) and number % int(step or 1) == 0


def add(sum_of: str | int, bound: dict[str, int]) -> int:
    parts = re.findall(r"([+-]?)(\w+)", str(sum_of))
    return sum((-1 if sign == "-" else 1) * (int(part) if part.isdigit() else bound[part]) for sign, part in parts)


def holds(values: dict[str, Any], array: Array, bound: dict[str, int]) -> bool:
    if "among" in values:
        return set(array.reshape(-1).tolist()) <= set(values["among"])
    if "words" in values:
        return all(isinstance(text, str) and text.strip() for text in array.reshape(-1).tolist())
    if "all" in values:
        return bool((array == values["all"]).all())
    if "from" in values:
        return bool((array == add(values["from"], bound) + np.arange(array.shape[-1])).all())
    if "low" in values:
        high = values["high"]
        highs = np.array(high) if isinstance(high, list) else add(high, bound)
        return bool((array >= values["low"]).all() and (array <= highs).all())
    return bool(np.isfinite(array.astype(np.float64)).all())
