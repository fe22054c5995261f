"""Makes the API's answers (`farm.contract.api`) from rows, refuses unknown keys of bodies, and pages long lists.

`username` is None for nobody.
"""

from typing import TYPE_CHECKING, TypeVar

from ninja import Schema
from pydantic import ConfigDict, Field

from farm.contract.api.answer import Answer

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet


Shape = TypeVar("Shape", bound=Answer)
Row = TypeVar("Row", bound="Model")


def fill(shape: type[Shape], row: object, **values: object) -> Shape:
    """Make an answer from a row. Each field gets the keyword argument of its name, or else the row's attribute.

    Other keyword arguments are ignored. Raises AttributeError where neither has a field, and pydantic's ValidationError
    for a value that does not fit.
    """
    return shape.model_validate(
        {name: values[name] if name in values else getattr(row, name) for name in shape.model_fields}
    )


def username(user: object) -> str | None:
    return getattr(user, "username", None)


class StrictSchema(Schema):
    """A body that is refused where it has a key that no field names."""

    model_config = ConfigDict(extra="forbid")


class Paging(Schema):
    """A page of a list. `after`: how many rows to skip; `limit`: how many to give, at most 100."""

    after: int = Field(default=0, ge=0, le=1_000_000, description="skip so many")
    limit: int = Field(default=50, ge=1, le=100, description="give at most so many")

    def slice(self, rows: "QuerySet[Row]") -> "QuerySet[Row]":
        return rows[self.after : self.after + self.limit]


class LongPaging(Paging):
    """`limit`: at most 1000."""

    limit: int = Field(default=1000, ge=1, le=1000, description="give at most so many")
