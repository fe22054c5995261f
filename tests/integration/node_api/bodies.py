"""Valid bodies of the node API as hypothesis makes them from the contract's own types: JSON values, not messages."""

from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, StringConstraints
from pydantic.fields import FieldInfo

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {type(None): st.none(), bool: st.booleans(), Any: ANY, object: ANY}


def bodies(message: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that the message accepts: each required field, and any of the others."""
    required = {name: field for name, field in message.model_fields.items() if _is_told(field)}
    others = {name: field for name, field in message.model_fields.items() if name not in required}
    return st.fixed_dictionaries(
        {field.alias or name: _of_field(field) for name, field in required.items()},
        optional={field.alias or name: _of_field(field) for name, field in others.items()},
    )


def _is_told(field: FieldInfo) -> bool:
    """Whether a body without it would be refused, or would not say which message it is."""
    return field.is_required() or (get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1)


def _of_field(field: FieldInfo) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: _values(field.annotation, field.metadata))


def _values(kind: Any, rules: Iterable[Any] = ()) -> st.SearchStrategy[Any]:
    """Values of a type as it is annotated; `rules` are pydantic's bounds of it."""
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        return _values(kind, [*rules, *more])
    if get_origin(kind) is not None:
        return _values_of_parts(kind, _bounds(rules))
    if kind in PLAIN:
        return PLAIN[kind]
    if issubclass(kind, BaseModel):
        return bodies(kind)
    if issubclass(kind, Enum):
        return st.sampled_from([one.value for one in kind])
    return _numbers_and_texts(kind, _bounds(rules))


def _values_of_parts(kind: Any, bounds: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of unions, literals, tuples and dictionaries."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(parts)
    sizes = {"min_size": bounds.get("min_length", 0), "max_size": min(bounds.get("max_length", 3), 3)}
    if origin is tuple:
        return st.lists(_values(parts[0]), **sizes)
    if origin is dict:
        return st.dictionaries(_values(parts[0]), _values(parts[1]), **sizes)
    if origin is Union or type(kind).__name__ == "UnionType":
        return st.one_of([_values(part) for part in parts])
    raise TypeError(f"no strategy for {kind}: the contract has a type that tests/integration/node_api/bodies.py lacks")


def _numbers_and_texts(kind: type, bounds: dict[str, Any]) -> st.SearchStrategy[Any]:
    least, most = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    if kind is int:
        # small ones: places and counts that a block may have
        lowest = 0 if least is None else least + ("gt" in bounds)
        highest = None if most is None else most - ("lt" in bounds)
        return st.integers(lowest, lowest + 3) | st.integers(lowest, highest)
    if kind is float:
        return st.floats(
            least, most, exclude_min="gt" in bounds, exclude_max="lt" in bounds, allow_nan=False, allow_infinity=False
        )
    if kind is not str:
        raise TypeError(
            f"no strategy for {kind}: the contract has a type that tests/integration/node_api/bodies.py lacks"
        )
    if "pattern" in bounds:
        return st.from_regex(str(bounds["pattern"]).replace("$", r"\Z"), alphabet=st.characters(codec="utf-8"))
    least, most = bounds.get("min_length") or 0, bounds.get("max_length")
    return st.text(
        st.characters(codec="utf-8"), min_size=least, max_size=least + 12 if most is None else min(most, least + 12)
    )


def _bounds(rules: Iterable[Any]) -> dict[str, Any]:
    """Bounds by name: ge, gt, le, lt, min_length, max_length, pattern."""
    found: dict[str, Any] = {}
    for rule in rules:
        if isinstance(rule, FieldInfo):
            found |= _bounds(rule.metadata)
        elif isinstance(rule, StringConstraints):
            found |= {name: getattr(rule, name) for name in ("min_length", "max_length", "pattern")}
        else:
            found |= {name: getattr(rule, name) for name in BOUNDS if getattr(rule, name, None) is not None}
    return {name: value for name, value in found.items() if value is not None}


BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
