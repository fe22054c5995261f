"""From a row to what the API answers of it (`farm.contract.api`)."""

from typing import TypeVar

from farm.contract.api.answer import Answer

Shape = TypeVar("Shape", bound=Answer)


def shaped(shape: type[Shape], row: object, **said: object) -> Shape:
    """A row as this shape: each field is what is said of it, else the row's own attribute of that name."""
    return shape.model_validate(
        {name: said[name] if name in said else getattr(row, name) for name in shape.model_fields}
    )


def name_of(user: object) -> str | None:
    """A person's name; None where their account is gone."""
    return getattr(user, "username", None)
