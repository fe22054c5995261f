"""The colours of releases, providers, precisions and operators, which are the same in every chart of every page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from zlib import crc32

from dashboard import axes
from dashboard.figures.theme import DASHES, MARKS, OTHER, SLOTS
from farm.contract.cells import Runtime
from farm.contract.document_cells import Cell
from farm.rules.runtimes import providers
from farm.rules.runtimes.order import release_order
from farm.rules.runtimes.provider_table import CPU, PROVIDERS
from farm.rules.wording import titles

# the colour of the CPU provider and of everything without a series colour
GREY = OTHER
_PRECISIONS: Mapping[str, int] = {
    "fp32": 1,
    "fp16": 3,
    "int8-dynamic": 2,
    "int8-qdq": 4,
    "int8-qoperator": 5,
    "int4": 6,
}
_OPERATORS: Mapping[str, int] = {
    "MatMul": 1, "Gemm": 1, "FusedMatMul": 1, "MatMulInteger": 2, "DynamicQuantizeMatMul": 2, "QLinearMatMul": 2,
    "MatMulIntegerToFloat": 2, "Conv": 1, "FusedConv": 1, "QLinearConv": 2, "ConvInteger": 2, "LayerNormalization": 3,
    "SkipLayerNormalization": 3, "BatchNormalization": 3, "Softmax": 4, "Attention": 4, "BiasSoftmax": 4, "Add": 5,
    "BiasGelu": 6, "Gelu": 6, "FastGelu": 6, "Relu": 6, "Transpose": 7, "Reshape": 7, "Gather": 7,
}  # fmt: skip
# the axis that decides the colour where cells differ along several, the first before the others
_LEADING = ("runtime", "provider", "precision")


def runtime_colour(runtime: Runtime) -> str:
    """Return the colour of a runtime's series. Neighbouring minor versions, and the first patches of a version, have
    different colours; releases further apart may share a colour."""
    release = release_order(runtime.version)
    own = 0 if runtime.distribution == "onnxruntime" else crc32(runtime.distribution.encode()) % SLOTS
    return _series_colour((3 * release.minor + 2 * release.micro + 4 + own) % SLOTS + 1)


def runtime_mark(runtime: Runtime) -> str:
    """Return Plotly's name of the shape of a runtime's points. Releases that share a colour nearly always have
    different shapes."""
    release = release_order(runtime.version)
    return MARKS[(release.minor + release.micro + 1) % len(MARKS)]


def provider_colour(name: str) -> str:
    """Return the colour of a provider, also of an unknown one from a plug-in. The CPU provider is grey, because every
    other provider falls back on it."""
    if name == CPU.name:
        return GREY
    entry = providers.find(name)
    return _series_colour((entry.colour if entry is not None else 0) or _hash_to_slot(titles.provider(name)))


def precision_colour(name: str) -> str:
    return _series_colour(_PRECISIONS.get(name) or _hash_to_slot(name))


def assign_operator_colours(types: Sequence[str]) -> dict[str, str]:
    """Give each of the first SLOTS operator types a different colour, which mostly depends on the name alone. Further
    types are left out."""
    given: dict[str, int] = {}
    for name in types[:SLOTS]:
        own = _OPERATORS.get(name) or _hash_to_slot(name)
        tried = ((own - 1 + step) % SLOTS + 1 for step in range(SLOTS))
        given[name] = next(slot for slot in tried if slot not in given.values())
    return {name: _series_colour(slot) for name, slot in given.items()}


def choose_cell_colour(cells: Iterable[Cell]) -> Callable[[Cell], str]:
    """Return the function that returns a cell's colour. Cells are coloured by the first of runtime, provider and
    precision in which these cells differ, else by runtime."""
    known = {axis.name for axis in axes.varying_axes(cells)}
    leading = next((name for name in _LEADING if name in known), "runtime")
    by_name: Mapping[str, Callable[[Cell], str]] = {
        "runtime": lambda cell: runtime_colour(cell.runtime),
        "provider": lambda cell: provider_colour(cell.provider),
        "precision": lambda cell: precision_colour(cell.precision),
    }
    return by_name[leading]


def cell_dash(cell: Cell) -> str:
    """Return Plotly's name of the dash of a cell's line, by its precision."""
    return DASHES[(_PRECISIONS.get(cell.precision) or _hash_to_slot(cell.precision)) // 2 % len(DASHES)]


def cell_mark(cell: Cell) -> str:
    """Return Plotly's name of the shape of a cell's points, by its precision."""
    return MARKS[(_PRECISIONS.get(cell.precision) or _hash_to_slot(cell.precision)) % len(MARKS)]


def assign_name_colours(names: Sequence[str]) -> list[str]:
    """Choose the colours of lines, in their order. Where at most SLOTS names, no two of them equal, are all precisions
    or all providers, they have the usual colours of these. Otherwise the first SLOTS lines have different colours and
    the others are grey."""
    if len(set(names)) == len(names) <= SLOTS:
        if all(name in _PRECISIONS for name in names):
            return [precision_colour(name) for name in names]
        if all(name in _TITLES for name in names):
            return [provider_colour(_TITLES[name]) for name in names]
    return [_series_colour(place) if place <= SLOTS else GREY for place in range(1, len(names) + 1)]


def _series_colour(slot: int) -> str:
    return f"@series-{slot}"


def _hash_to_slot(name: str) -> int:
    return crc32(name.encode()) % SLOTS + 1


_TITLES: Mapping[str, str] = {
    titles.provider(entry.name): entry.name for entry in PROVIDERS if entry.colour or entry is CPU
}
