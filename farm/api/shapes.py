"""From a row to what the API answers of it (`farm.contract.api`); long lists a page at a time, in their order."""

from typing import TYPE_CHECKING, TypeVar

from ninja import Schema
from pydantic import Field

from farm.contract.api.answer import Answer

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet


Shape = TypeVar("Shape", bound=Answer)
Row = TypeVar("Row", bound="Model")


def shaped(shape: type[Shape], row: object, **values: object) -> Shape:
    """A row as this shape: each field is what is said of it, else the row's own attribute of that name."""
    return shape.model_validate(
        {name: values[name] if name in values else getattr(row, name) for name in shape.model_fields}
    )


def name_of(user: object) -> str | None:
    return getattr(user, "username", None)


class Paging(Schema):
    """`after`: skip so many; `limit`: at most 100."""

    after: int = Field(default=0, ge=0, le=1_000_000, description="skip so many")
    limit: int = Field(default=50, ge=1, le=100, description="give at most so many")

    def of(self, rows: "QuerySet[Row]") -> "QuerySet[Row]":
        return rows[self.after : self.after + self.limit]


class LongPaging(Paging):
    """`limit`: at most 1000."""

    limit: int = Field(default=1000, ge=1, le=1000, description="give at most so many")
