"""A list as every page shows one: searched, filtered and sorted by its address, a page of its rows as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.core.paginator import Page
from django.db.models import F, Model, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest

from farm.rules.presenting.tables import Table

Row = TypeVar("Row", bound=Model)
# what a list is sorted by: the name in the address, and the fields that this means
Orders = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Filter:
    """One choice of the address: its values with what they are called. The empty value filters nothing."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]]
    value: str = ""


@dataclass(frozen=True)
class Together:
    """What may be done with the chosen rows of a list: they are sent to `address`. `key` presses the button."""

    label: str
    address: str
    key: str = ""


@dataclass(frozen=True)
class Listing(Generic[Row]):
    """A page of a list. `words`: what was searched for; `kept`: parameters of the address that filters leave as they
    are; `is_posted`: what is done with chosen rows changes something."""

    table: Table
    page: Page[Row] | None = None
    filters: Sequence[Filter] = ()
    words: str = ""
    searches: str = "Search"
    together: Sequence[Together] = ()
    is_posted: bool = False
    kept: Sequence[tuple[str, str]] = ()

    @property
    def is_narrowed(self) -> bool:
        """Whether the address leaves any row out."""
        return bool(self.words) or any(one.value for one in self.filters)

    @property
    def has_acts(self) -> bool:
        """Whether rows have buttons, which need a form to belong to."""
        return any(entry.act is not None for row in self.table.rows for entry in row)


def chosen(
    request: HttpRequest, name: str, label: str, choices: Iterable[tuple[str, str]], *, nothing: str = "all"
) -> Filter:
    """The filter as the address sets it; a value that it does not have sets nothing, which is called `nothing`."""
    known = [("", nothing), *choices]
    value = request.GET.get(name, "")
    return Filter(name, label, known, value if value in dict(known) else "")


def ordered(request: HttpRequest, rows: QuerySet[Row], orders: Orders) -> QuerySet[Row]:
    """The rows in the order that the address names; as they came where it names none that there is."""
    wanted = request.GET.get("sort", "")
    fields = orders.get(wanted.removeprefix("-"))
    if fields is None:
        return rows
    return rows.order_by(*(_order(one, is_down=wanted.startswith("-")) for one in fields), "-pk")


def _order(field: str, *, is_down: bool) -> OrderBy:
    """What is not known stands last either way."""
    return F(field).desc(nulls_last=True) if is_down else F(field).asc(nulls_last=True)
