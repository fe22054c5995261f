"""Long lists, a page at a time, as bare lists of rows in the order of their queryset."""

from typing import TYPE_CHECKING, TypeVar

from ninja import Schema
from pydantic import Field

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound="Model")


class Paging(Schema):
    """`after`: skip so many; `limit`: at most 100."""

    after: int = Field(default=0, ge=0, le=1_000_000, description="skip so many")
    limit: int = Field(default=50, ge=1, le=100, description="give at most so many")

    def of(self, rows: "QuerySet[Row]") -> "QuerySet[Row]":
        return rows[self.after : self.after + self.limit]


class LongPaging(Paging):
    """`limit`: at most 1000."""

    limit: int = Field(default=1000, ge=1, le=1000, description="give at most so many")
