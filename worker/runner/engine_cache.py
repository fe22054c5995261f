"""Makes the options of a compiling provider's engine cache, and times the start of a session with a cached engine."""

import os
import time
from collections.abc import Callable

import numpy as np

from worker.runner import faults
from worker.runner.order import Order


def make_cache_options(order: Order) -> dict[str, str]:
    """Make the provider options for the cache folder, and for the inputs' shapes if the cell sets none.

    Empty for a provider that compiles nothing.
    """
    building = order.building
    if building is None:
        return {}
    options = {building.cache: building.folder}
    if building.shapes and not set(building.shapes) & order.provider_options.keys():
        options |= dict.fromkeys(building.shapes, _format_shapes(order.inputs))
    return options


def measure_cached_start(order: Order, *, open_session: Callable[[Order], object]) -> dict[str, object]:
    """Time `open_session` with the cached engine. Return `cached_session_ms`, and `engine_bytes`, the cache's size.

    Empty where the provider compiles nothing, where its cache is empty, or where `open_session` raises Refusal.
    """
    if order.building is None:
        return {}
    walk = os.walk(order.building.folder)
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in walk for name in names)
    if not size:
        return {}
    began = time.perf_counter_ns()
    try:
        open_session(order)
    except faults.Refusal:
        # the cell's first session ran, so this failure is not the cell's
        return {}
    return {"cached_session_ms": (time.perf_counter_ns() - began) / 1e6, "engine_bytes": size}


def _format_shapes(inputs: str) -> str:
    """Format the inputs' shapes as TensorRT does, `name:1x3x224x224,other:…`; scalars are left out."""
    with np.load(inputs, allow_pickle=False) as archive:
        shapes = {name: archive[name].shape for name in archive.files}
    return ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items() if shape)
