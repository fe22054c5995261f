"""Builds the default search space: the settings that a search tries when nobody names any."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from farm.rules.cells.values import to_plain
from farm.rules.matrices.matrix import Matrix, parse
from farm.rules.runtimes import providers

# numbers of threads that are tried: all cores, half of them, a quarter, and one
MAX_COUNTS = 4
# the batches that compete where throughput is the goal
BATCHES = (1, 8, 32)
ARENA_OFF = {"name": "arena off", "arena": False}
SPINNING_OFF = {"name": "spinning off", "spinning": False}


def default_space(names: Sequence[str], *, cores: int, beside: Matrix | None = None) -> Matrix:
    """Build the search space of these providers, in their order.

    Every point is an `include` entry. A CPU provider's first point has the precision of the upload and a thread for
    each core. `beside` is a matrix whose settings are kept, and whose axes are combined with all points and replace the
    points' own; its `exclude` and `include` are dropped. Raises MatrixProblem, such as for too many points.
    """
    points = [point for name in names for point in _list_points(name, cores)]
    declared = beside or Matrix()
    more = [dict(zip(declared.axes, map(to_plain, values), strict=True)) for values in product(*declared.axes.values())]
    space = parse({"include": [{**point, **values} for values, point in product(more, points)]})
    return replace(declared, axes={}, exclude=(), include=space.include)


def _list_points(name: str, cores: int) -> Iterator[dict[str, object]]:
    if providers.provider_of(name).device != "cpu":
        for precision, level in product(("fp32", "fp16"), ("all", "extended")):
            yield {"provider": name, "precision": precision, "threads": 1, "optimization": level}
        return
    counts = dict.fromkeys([*(max(1, cores >> place) for place in range(MAX_COUNTS - 1)), 1])
    for precision, threads in product(("fp32", "int8-dynamic"), counts):
        plain = {"provider": name, "precision": precision, "threads": threads}
        # with a single thread, spinning makes no difference
        sessions = ["default", ARENA_OFF, *([SPINNING_OFF] if threads > 1 else [])]
        yield from ({**plain, "session": session, "optimization": "all"} for session in sessions)
        yield {**plain, "session": "default", "optimization": "extended"}
