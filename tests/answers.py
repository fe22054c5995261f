"""Answers of the API as stand-ins for a farm give them: whole, with what matters said."""

from types import NoneType
from typing import TypeVar, get_args, get_origin

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)
PLAIN = {str: "", int: 1, float: 1.0, bool: False, list: [], dict: {}}
MOMENT = "2026-11-25T20:00:00Z"


def answer(shape: type[Shape], **said: object) -> Shape:
    """One of this shape; what is not said is empty."""
    return shape.model_validate(plain(shape, **said))


def plain(shape: type[BaseModel], **said: object) -> dict[str, object]:
    """The same as JSON."""
    empty = {name: _empty(field.annotation) for name, field in shape.model_fields.items()}
    return empty | said


def _empty(kind: object) -> object:
    if NoneType in get_args(kind):
        return None
    plainest = get_origin(kind) or kind
    if isinstance(plainest, type) and issubclass(plainest, BaseModel):
        return plain(plainest)
    return PLAIN.get(plainest, MOMENT)
