"""The matrix: what a team declares, GitHub Actions style, and what it is read into.

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
from typing import TypedDict, cast

from farm.contract.blocks import Tolerance
from farm.contract.cells import Budget
from farm.rules.cells import scenarios
from farm.rules.cells.axes import MATRIX_AXES
from farm.rules.cells.fills import SCHEMA as FILLS_SCHEMA
from farm.rules.cells.fills import read_fills
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_provider, read_runtime, whole_number
from farm.rules.cells.session_sets import SessionSet
from farm.rules.cells.values import Value, key_of, plain_of, words_of
from farm.rules.matrices.matrix_text import read_text, whole_characters
from farm.rules.matrices.product import Product, Selector
from farm.rules.matrices.settings import SCHEMAS, read_tolerances, read_wish, with_scenario
from farm.rules.runtimes.nearest import choice_sentence

__all__ = ["MAX_CELLS", "Matrix", "count_points", "default", "from_options", "json_schema", "parse"]

MAX_CELLS = 5_000
MAX_PARALLEL = 1_000
# what one list may hold before anything is multiplied
_MAX_VALUES = 1_000
_MAX_ENTRIES = 1_000
_MAX_PRODUCT = 200_000
_SETTINGS = ("budget", "fail-fast", "inputs", "max-parallel", "name", "operators", "sustained", "tolerance", "wish")
_WRAPPERS = ("strategy", "matrix")
_RULES = ("exclude", "include")

Read = Callable[[object], Value]
# a matrix as a file has it
PlainMatrix = TypedDict(
    "PlainMatrix",
    {
        "budget": str,
        "fail-fast": bool,
        "max-parallel": int,
        "name": str,
        "operators": bool,
        "wish": float,
        "tolerance": dict[str, dict[str, float]],
        "inputs": dict[str, str],
        # values by axis, and rules
        "matrix": dict[str, Sequence[object]],
    },
    total=False,
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A declared product. `axes` holds the declared axes only; equal values of one axis stay distinct points."""

    axes: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    exclude: tuple[Selector, ...] = ()
    include: tuple[Selector, ...] = ()
    budget: Budget = Budget.QUICK
    fail_fast: bool = False
    max_parallel: int | None = None
    name: str | None = None
    # whether each launch traces a few inferences too, for verdicts on operators; None: as the budget has it
    operators: bool | None = None
    # the smallest change that its comparisons should see, a fraction
    wish: float | None = None
    # outputs that are judged by a tolerance of their own, whatever the precision
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    # how inputs are made, by name: texts of farm.rules.cells.fills
    inputs: Mapping[str, str] = field(default_factory=dict)
    # packages beyond the known distributions that whoever read it allows by name; never part of what is declared
    allowed: frozenset[str] = frozenset()

    @property
    def is_tracing_rounds(self) -> bool:
        """Whether operators get verdicts: where that is said, and else in `precise`; `glance` compares nothing."""
        wanted = self.budget is Budget.PRECISE if self.operators is None else self.operators
        return wanted and self.budget is not Budget.GLANCE

    def as_plain(self) -> PlainMatrix:
        """The matrix as plain values that `parse` reads back: what is stored and shown."""
        declared: dict[str, Sequence[object]] = {
            name: [plain_of(v) for v in values] for name, values in self.axes.items()
        }
        for rule, selectors in (("exclude", self.exclude), ("include", self.include)):
            if selectors:
                declared[rule] = [{axis: plain_of(v) for axis, v in s.items()} for s in selectors]
        settings = {
            "max-parallel": self.max_parallel,
            "name": self.name,
            "operators": self.operators,
            "wish": self.wish,
            "tolerance": {name: one.model_dump() for name, one in self.tolerances.items()} or None,
            "inputs": dict(self.inputs) or None,
        }
        said = cast(PlainMatrix, {key: value for key, value in settings.items() if value is not None})
        return {"budget": self.budget.value, "fail-fast": self.fail_fast, **said, "matrix": declared}


def parse(source: str | Mapping[str, object], *, allowed: Collection[str] = ()) -> Matrix:
    """The matrix in a file's text (YAML or JSON) or in plain values. Raises MatrixProblem.

    `allowed`: names of packages beyond the known distributions that `runtime` may hold.
    """
    plain = read_text(source) if isinstance(source, str) else whole_characters(source)
    if not isinstance(plain, Mapping) or not plain:
        raise MatrixProblem("The matrix is not a mapping of axes: start with a line like `runtime: [1.29.0, 1.31.1]`.")
    keys = with_scenario(_flatten(plain))
    read = _readers(allowed)
    axes = {name: _read_axis(name, keys[name], read=read[name]) for name in MATRIX_AXES if name in keys}
    matrix = Matrix(
        axes=axes,
        exclude=_read_selectors("exclude", keys.get("exclude"), axes, read=read),
        include=_read_selectors("include", keys.get("include"), axes, read=read),
        budget=_read_budget(keys.get("budget", Budget.QUICK.value)),
        fail_fast=_read_flag("fail-fast", keys.get("fail-fast", False)),
        max_parallel=_read_parallel(keys.get("max-parallel")),
        name=_read_name(keys.get("name")),
        operators=_read_operators(keys.get("operators")),
        wish=read_wish(keys.get("wish")),
        tolerances=read_tolerances(keys.get("tolerance")),
        inputs=read_fills(keys.get("inputs")),
        allowed=frozenset(allowed),
    )
    _check_exclude(matrix)
    _check_streams(matrix)
    _check_size(matrix)
    return matrix


def from_options(base: Matrix | None = None, *, allowed: Collection[str] = (), **options: object) -> Matrix:
    """The matrix of a command line: each option names an axis (or `budget`) and holds its values.

    Values are a list, or text separated by commas. Options that are None are left out; the others replace the axis in
    `base`. `allowed` as `parse` takes it. Raises MatrixProblem.
    """
    given = {name: _split(value) for name, value in options.items() if value is not None}
    plain = base.as_plain() if base is not None else {"matrix": {}}
    declared = {**plain.pop("matrix"), **{k: v for k, v in given.items() if k != "budget"}}
    settings = {**plain, **({"budget": given["budget"][-1]} if "budget" in given else {})}
    return parse({**settings, "matrix": declared}, allowed=allowed)


def default() -> Matrix:
    """The matrix that is measured when none is given."""
    return parse(resources.files("farm.rules.matrices").joinpath("default_matrix.yaml").read_text(encoding="utf-8"))


@cache
def json_schema() -> dict[str, object]:
    """The JSON schema (2020-12) of a matrix file."""
    one = {name: dict(axis.schema) for name, axis in MATRIX_AXES.items()}
    # in a rule, a session set is named by its name alone
    selector = {"type": "object", "minProperties": 1, "additionalProperties": False, "properties": one}
    axes: dict[str, object] = {
        name: {"anyOf": [schema, {"type": "array", "minItems": 1, "items": schema}]} for name, schema in one.items()
    }
    axes |= {rule: {"type": "array", "items": selector} for rule in _RULES}
    settings = {
        "budget": {"enum": [budget.value for budget in Budget], "default": Budget.QUICK.value},
        "fail-fast": {"type": "boolean", "default": False},
        "max-parallel": {"type": "integer", "minimum": 1, "maximum": MAX_PARALLEL},
        "name": {"type": "string", "maxLength": 100},
        "operators": {"type": "boolean"},
        "inputs": FILLS_SCHEMA,
        **SCHEMAS,
    }
    nested = {"type": "object", "additionalProperties": False, "properties": axes}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "onnxfarm matrix",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {**settings, "matrix": nested, **axes},
    }


def _split(value: object) -> list[object]:
    texts = value if isinstance(value, list | tuple) else [value]
    parts = [text.split(",") if isinstance(text, str) else [text] for text in texts]
    return [part.strip() if isinstance(part, str) else part for some in parts for part in some]


def _flatten(plain: Mapping[str, object]) -> dict[str, object]:
    """All keys in one mapping, whether the axes stand under `matrix` or at the top level."""
    known = (*MATRIX_AXES, *_RULES, *_SETTINGS, *_WRAPPERS)
    found: dict[str, object] = {}
    for written, value in plain.items():
        key = str(written).replace("_", "-")
        if key not in known:
            raise MatrixProblem(choice_sentence("key", str(written), known))
        inner = _unwrapped(key, value) if key in _WRAPPERS else {key: value}
        if twice := next((name for name in inner if name in found), None):
            raise MatrixProblem(
                f"The key {twice!r} is given twice, at the top level and under {key!r}: keep one of them."
            )
        found |= inner
    return found


def _unwrapped(key: str, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise MatrixProblem(f"{key} is {value!r}: write a mapping of axes, such as `runtime: [1.29.0, 1.31.1]`.")
    return _flatten(value)


def _readers(allowed: Collection[str]) -> dict[str, Read]:
    """How a value of each axis is read."""
    given: dict[str, Read] = {
        "runtime": partial(read_runtime, allowed=allowed),
        "provider": partial(read_provider, allowed=allowed),
    }
    return {name: axis.read for name, axis in MATRIX_AXES.items()} | given


def _read_axis(name: str, written: object, *, read: Read) -> tuple[Value, ...]:
    values = list(written) if isinstance(written, list | tuple) else [written]
    if not values or values == [None]:
        raise MatrixProblem(f"The axis {name!r} is empty: give it at least one value, or leave it out.")
    if len(values) > _MAX_VALUES:
        raise MatrixProblem(f"The axis {name!r} has {len(values):,} values and at most {_MAX_VALUES:,} are read.")
    found = tuple(read(value) for value in values)
    _check_names(value for value in found if isinstance(value, SessionSet))
    return found


def _check_names(sets: Iterable[SessionSet]) -> None:
    """A name stands for one set: equal ones make an A/A pair, others would be ambiguous."""
    by_name: dict[str, SessionSet] = {}
    for one in sets:
        if by_name.setdefault(one.name, one) != one:
            raise MatrixProblem(f"Two session sets are named {one.name!r}: give each its own name.")


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
    for key, written in entry.items():
        axis = str(key).replace("_", "-")
        if axis not in MATRIX_AXES:
            raise MatrixProblem(f"{where}: {choice_sentence('axis', str(key), MATRIX_AXES)}")
        try:
            named = _named_session(written, axes) if axis == "session" else None
            selector[axis] = named or read[axis](written)
        except MatrixProblem as problem:
            raise MatrixProblem(f"{where}: {problem}") from None
    return selector


def _named_session(written: object, axes: Mapping[str, tuple[Value, ...]]) -> SessionSet | None:
    sets = [one for one in axes.get("session", ()) if isinstance(one, SessionSet)]
    return next((one for one in sets if isinstance(written, str) and one.name == written), None)


def _read_budget(written: object) -> Budget:
    try:
        return Budget(str(written))
    except ValueError:
        raise MatrixProblem(choice_sentence("budget", str(written), [b.value for b in Budget])) from None


def _read_flag(key: str, written: object) -> bool:
    if not isinstance(written, bool):
        raise MatrixProblem(f"{key} is {written!r}: write true or false.")
    return written


def _read_operators(written: object) -> bool | None:
    return None if written is None else _read_flag("operators", written)


def _read_parallel(written: object) -> int | None:
    return None if written is None else whole_number("max-parallel", written, most=MAX_PARALLEL)


def _read_name(written: object) -> str | None:
    if written is not None and (not isinstance(written, str) or len(written) > 100):
        raise MatrixProblem(f"name is {written!r}: write a text of at most 100 characters.")
    return written


def _check_exclude(matrix: Matrix) -> None:
    """An exclude that cannot match is a mistake, not a wish."""
    places = Product(matrix.axes).places
    for place, selector in enumerate(matrix.exclude, start=1):
        for axis, value in selector.items():
            if axis not in places:
                raise MatrixProblem(
                    f"exclude entry {place} names the axis {axis!r}, which the matrix does not declare."
                )
            if key_of(value) not in places[axis]:
                choice = choice_sentence(axis, words_of(value), [words_of(v) for v in matrix.axes[axis]])
                raise MatrixProblem(f"exclude entry {place} matches nothing. {choice}")


def _check_streams(matrix: Matrix) -> None:
    """The streams of a closed loop, and the sequences of a generation, are said once."""
    points = (matrix.axes, *({axis: (value,) for axis, value in entry.items()} for entry in matrix.include))
    said = {axis for axes in points for axis in axes}
    if "concurrency" in said and any(scenarios.is_closed(one) for axes in points for one in axes.get("scenario", ())):
        raise MatrixProblem("concurrency says the streams of the scenario load:closed too: leave one of the two out.")
    if "batch" in said and any(scenarios.says_batch(one) for axes in points for one in axes.get("scenario", ())):
        raise MatrixProblem("batch says the sequences of the scenario generate too: leave one of the two out.")


def count_points(matrix: Matrix) -> int:
    """How many points a matrix has at most: those of the product that are not excluded, and one an `include` entry."""
    points = prod(len(values) for values in matrix.axes.values())
    if matrix.exclude and points <= _MAX_PRODUCT:
        points = int(Product(matrix.axes).without(matrix.exclude).sum())
    return points + len(matrix.include)


def _check_size(matrix: Matrix) -> None:
    cells = count_points(matrix)
    if cells > MAX_CELLS:
        raise MatrixProblem(
            f"The matrix has {cells:,} cells, at most {MAX_CELLS:,} are allowed: drop values or add `exclude` entries."
        )
