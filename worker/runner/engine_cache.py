"""Providers that compile the graph: where their engine is kept, what shapes it is built for, what keeping it saves."""

import os
import time
from collections.abc import Callable

import numpy as np

from worker.runner import faults
from worker.runner.order import Order


def make_cache_options(order: Order) -> dict[str, str]:
    """The options that the agent answers for: the cache folder, and the workload's shapes where the cell sets none."""
    part = order.building
    if part is None:
        return {}
    found = {part.cache: part.folder}
    if part.shapes and not set(part.shapes) & order.provider_options.keys():
        found |= dict.fromkeys(part.shapes, _shapes(order.inputs))
    return found


def measure_cached_start(order: Order, *, opened: Callable[[Order], object]) -> dict[str, object]:
    """How long a session takes that finds its engine in the cache, in ms, and how many bytes lie there.

    `opened` opens a session for an order. Empty where the provider compiles nothing or leaves nothing in its cache.
    """
    if order.building is None:
        return {}
    places = os.walk(order.building.folder)
    size = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in places for name in names)
    if not size:
        return {}
    began = time.perf_counter_ns()
    try:
        opened(order)
    except faults.Refusal:
        # the cell itself runs: what its provider cannot do a second time is no fault of it
        return {}
    return {"cached_session_ms": (time.perf_counter_ns() - began) / 1e6, "engine_bytes": size}


def _shapes(inputs: str) -> str:
    """`name:1x3x224x224,other:…` of the inputs, as TensorRT writes shapes; scalars have none."""
    with np.load(inputs, allow_pickle=False) as archive:
        shapes = {name: archive[name].shape for name in archive.files}
    return ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items() if shape)
