"""The matrix that a team declares, in the style of GitHub Actions, and how it is read.

    budget: quick
    matrix:
      runtime: [1.29.0, 1.31.1]
      batch: [1, 8]
      exclude: [{runtime: 1.29.0, batch: 8}]

The axes may also stand at the top level. docs/matrix.md shows one file with every key.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from math import prod
from typing import Any

from farm.contract.cells import Budget
from farm.rules.cells import scenarios
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_provider, read_runtime
from farm.rules.cells.session_sets import SessionSet
from farm.rules.cells.values import Value, comparison_key, format_value, to_plain
from farm.rules.matrices.matrix_text import check_characters, read_text
from farm.rules.matrices.product import Product, Selector
from farm.rules.matrices.settings import SCHEMAS, Settings, read_settings, with_scenario
from farm.rules.runtimes.nearest import choice_sentence

__all__ = ["MAX_CELLS", "Matrix", "count_points", "default_matrix", "from_options", "json_schema", "parse"]

MAX_CELLS = 5_000
# limits of one axis and of one rule, which are checked before the axes are multiplied
_MAX_VALUES = 1_000
_MAX_ENTRIES = 1_000
# a larger product is counted without its `exclude` entries, because it would take too much memory
_MAX_PRODUCT = 200_000
_WRAPPERS = ("strategy", "matrix")
_RULES = ("exclude", "include")

Read = Callable[[object], Value]


@dataclass(frozen=True)
class Matrix(Settings):
    """A declared matrix. `axes` holds the declared axes only; equal values on an axis give separate points."""

    axes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    exclude: tuple[Selector, ...] = ()
    include: tuple[Selector, ...] = ()
    # packages beyond the known distributions that the farm allowed when it read the matrix; not part of the declaration
    allowed: frozenset[str] = frozenset()

    @property
    def is_tracing_rounds(self) -> bool:
        """Whether launches trace a few inferences: as `operators` says, or else by budget precise; never by glance."""
        wanted = self.budget is Budget.PRECISE if self.operators is None else self.operators
        return wanted and self.budget is not Budget.GLANCE

    def as_plain(self) -> dict[str, Any]:
        """Return the matrix, without `allowed`, as plain values that `parse` reads back: what is stored and shown."""
        declared: dict[str, Sequence[object]] = {
            name: [to_plain(v) for v in values] for name, values in self.axes.items()
        }
        for rule, selectors in (("exclude", self.exclude), ("include", self.include)):
            if selectors:
                declared[rule] = [{axis: to_plain(v) for axis, v in s.items()} for s in selectors]
        return {**Settings.as_plain(self), "matrix": declared}


def parse(source: str | Mapping[str, object], *, allowed: Collection[str] = ()) -> Matrix:
    """Parse a matrix from a file's text (YAML or JSON) or from plain values.

    `allowed`: names of packages beyond the known distributions that `runtime` may have. Raises MatrixProblem for what
    is no mapping or an empty one, unknown or repeated keys, values that an axis does not take, an `exclude` entry that
    matches nothing, a number that an axis and a scenario both set, and more than MAX_CELLS points, as `count_points`
    counts them. `{"matrix": {}}` is valid: a matrix without axes.
    """
    plain = read_text(source) if isinstance(source, str) else check_characters(source)
    if not isinstance(plain, Mapping) or not plain:
        raise MatrixProblem("The matrix is not a mapping of axes: start with a line like `runtime: [1.29.0, 1.31.1]`.")
    keys = with_scenario(_flatten(plain))
    read = _make_readers(allowed)
    axes = {name: _read_axis(name, keys[name], read=read[name]) for name in MATRIX_AXES if name in keys}
    matrix = Matrix(
        axes=axes,
        exclude=_read_selectors("exclude", keys.get("exclude"), axes, read=read),
        include=_read_selectors("include", keys.get("include"), axes, read=read),
        allowed=frozenset(allowed),
        **vars(read_settings(keys)),
    )
    _check_exclude(matrix)
    _check_streams(matrix)
    _check_size(matrix)
    return matrix


def from_options(base: Matrix | None = None, *, allowed: Collection[str] = (), **options: object) -> Matrix:
    """Make the matrix of a command line: each option names an axis (or `budget`) and holds its values.

    Values are a list, or text separated by commas; of several budgets the last counts. Options that are None are left
    out; the others replace the axis in `base`, whose settings and rules stay. `allowed` is as in `parse`, and that of
    `base` is not taken over. Raises MatrixProblem, as `parse` does, and IndexError for an empty list of budgets.
    """
    axes: dict[str, list[object]] = {name: [] for name, value in options.items() if value is not None}
    for name in axes:
        values = options[name]
        for value in values if isinstance(values, list | tuple) else [values]:
            axes[name] += map(str.strip, value.split(",")) if isinstance(value, str) else [value]
    plain = base.as_plain() if base is not None else {"matrix": {}}
    declared = {**plain.pop("matrix"), **{k: v for k, v in axes.items() if k != "budget"}}
    settings = {**plain, **({"budget": axes["budget"][-1]} if "budget" in axes else {})}
    return parse({**settings, "matrix": declared}, allowed=allowed)


def default_matrix() -> Matrix:
    return parse(resources.files("farm.rules.matrices").joinpath("default_matrix.yaml").read_text(encoding="utf-8"))


@cache
def json_schema() -> dict[str, object]:
    """Return the JSON schema (2020-12) of a matrix file, which is made once. It knows keys with dashes, and no wrapper
    `strategy`, although `parse` takes underscores and `strategy` too."""
    schemas = {name: dict(axis.schema) for name, axis in MATRIX_AXES.items()}
    # in a rule, a session set is named by its name alone
    selector = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": schemas}
    axes: dict[str, object] = {
        name: {"anyOf": [schema, {"type": "array", "minItems": 1, "items": schema}]} for name, schema in schemas.items()
    }
    axes |= {rule: {"type": "array", "items": selector} for rule in _RULES}
    nested = {"type": "object", "additionalProperties": False, "properties": axes}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "onnxfarm matrix",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {**SCHEMAS, "matrix": nested, **axes},
    }


def _flatten(plain: Mapping[str, object]) -> dict[str, object]:
    """Return all keys in one mapping, whether the axes stand under `matrix` or at the top level."""
    keys = (*MATRIX_AXES, *_RULES, *sorted(SCHEMAS), *_WRAPPERS)
    flat: dict[str, object] = {}
    for written, value in plain.items():
        key = str(written).replace("_", "-")
        if key not in keys:
            raise MatrixProblem(choice_sentence("key", str(written), keys))
        if key in _WRAPPERS and not isinstance(value, Mapping):
            raise MatrixProblem(f"{key} is {value!r}: write a mapping of axes, such as `runtime: [1.29.0, 1.31.1]`.")
        inner = _flatten(value) if isinstance(value, Mapping) and key in _WRAPPERS else {key: value}
        if twice := next((name for name in inner if name in flat), None):
            raise MatrixProblem(
                f"The key {twice!r} is given twice, at the top level and under {key!r}: keep one of them."
            )
        flat |= inner
    return flat


def _make_readers(allowed: Collection[str]) -> dict[str, Read]:
    """Return the function that reads a value of each axis."""
    special: dict[str, Read] = {
        "runtime": partial(read_runtime, allowed=allowed),
        "provider": partial(read_provider, allowed=allowed),
    }
    return {name: axis.read for name, axis in MATRIX_AXES.items()} | special


def _read_axis(name: str, written: object, *, read: Read) -> tuple[Value, ...]:
    values = list(written) if isinstance(written, list | tuple) else [written]
    if not values or values == [None]:
        raise MatrixProblem(f"The axis {name!r} is empty: give it at least one value, or leave it out.")
    if len(values) > _MAX_VALUES:
        raise MatrixProblem(f"The axis {name!r} has {len(values):,} values and at most {_MAX_VALUES:,} are read.")
    parsed = tuple(read(value) for value in values)
    _check_names(value for value in parsed if isinstance(value, SessionSet))
    return parsed


def _check_names(sets: Iterable[SessionSet]) -> None:
    """Check that a name stands for a single set: equal sets make an A/A pair, others would be ambiguous."""
    by_name: dict[str, SessionSet] = {}
    for named in sets:
        if by_name.setdefault(named.name, named) != named:
            raise MatrixProblem(f"Two session sets are named {named.name!r}: give each its own name.")


def _read_selectors(
    rule: str, written: object, axes: Mapping[str, tuple[Value, ...]], *, read: Mapping[str, Read]
) -> tuple[Selector, ...]:
    entries = [] if written is None else written
    if not isinstance(entries, list | tuple):
        raise MatrixProblem(f"{rule} is {written!r}: write a list of combinations, such as `- {{batch: 8}}`.")
    if len(entries) > _MAX_ENTRIES:
        raise MatrixProblem(f"{rule} has {len(entries):,} entries and at most {_MAX_ENTRIES:,} are read.")
    return tuple(
        _read_selector(f"{rule} entry {place}", entry, axes, read=read) for place, entry in enumerate(entries, start=1)
    )


def _read_selector(
    where: str, entry: object, axes: Mapping[str, tuple[Value, ...]], *, read: Mapping[str, Read]
) -> Selector:
    if not isinstance(entry, Mapping) or not entry:
        raise MatrixProblem(f"{where} is {entry!r}: write one or more `axis: value` pairs.")
    selector: dict[str, Value] = {}
    sets = {value.name: value for value in axes.get("session", ()) if isinstance(value, SessionSet)}
    for key, written in entry.items():
        axis = str(key).replace("_", "-")
        if axis not in MATRIX_AXES:
            raise MatrixProblem(f"{where}: {choice_sentence('axis', str(key), MATRIX_AXES)}")
        try:
            named = sets.get(written) if axis == "session" and isinstance(written, str) else None
            selector[axis] = named or read[axis](written)
        except MatrixProblem as problem:
            raise MatrixProblem(f"{where}: {problem}") from None
    return selector


def _check_exclude(matrix: Matrix) -> None:
    """Refuse an `exclude` entry that can match no point, because it is probably a mistake."""
    places = Product(matrix.axes).places
    for place, selector in enumerate(matrix.exclude, start=1):
        for axis, value in selector.items():
            if axis not in places:
                raise MatrixProblem(
                    f"exclude entry {place} names the axis {axis!r}, which the matrix does not declare."
                )
            if comparison_key(value) not in places[axis]:
                choice = choice_sentence(axis, format_value(value), [format_value(v) for v in matrix.axes[axis]])
                raise MatrixProblem(f"exclude entry {place} matches nothing. {choice}")


def _check_streams(matrix: Matrix) -> None:
    """Refuse a matrix that sets the same number twice, by an axis and in the text of a scenario."""
    points = (matrix.axes, *({axis: (value,) for axis, value in entry.items()} for entry in matrix.include))
    declared = {axis for axes in points for axis in axes}
    for text in (text for axes in points for text in axes.get("scenario", ())):
        for axis, problem in scenarios.parse(text).axes_it_sets().items():
            if axis in declared:
                raise MatrixProblem(problem)


def count_points(matrix: Matrix) -> int:
    """Return an upper bound of the matrix's points: those of the product that remain, and one for each `include` entry.

    The entries of `exclude` do not count for a product of more than _MAX_PRODUCT points.
    """
    points = prod(len(values) for values in matrix.axes.values())
    if matrix.exclude and points <= _MAX_PRODUCT:
        points = int(Product(matrix.axes).mark_remaining(matrix.exclude).sum())
    return points + len(matrix.include)


def _check_size(matrix: Matrix) -> None:
    cells = count_points(matrix)
    if cells > MAX_CELLS:
        raise MatrixProblem(
            f"The matrix has {cells:,} cells, at most {MAX_CELLS:,} are allowed: drop values or add `exclude` entries."
        )
