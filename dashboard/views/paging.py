"""What an address says of a list: its page, its part, its search, and the rows that it names by their numbers."""

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 50


def paged(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """The page that the address names; the nearest there is for a number that is none."""
    found: Page[Any] = Paginator(rows.values_list("pk", flat=True), PER_PAGE).get_page(request.GET.get("page"))
    found.object_list = _with(rows, found.object_list)
    return found


def paged_in_order(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """The same for rows that an index keeps in their order: they are read as they come."""
    return Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))


def first(rows: QuerySet[Any], most: int) -> list[Any]:
    """The first so many rows."""
    return _with(rows, rows.values_list("pk", flat=True)[:most])


def _with(rows: QuerySet[Any], numbers: Iterable[int]) -> list[Any]:
    """Rows that were found by their numbers: what a list shows of each row is not sorted with all the others."""
    wanted = list(numbers)
    return list(rows.filter(pk__in=wanted)) if wanted else []


def part_of(request: HttpRequest) -> int:
    """Which part of a large map the address asks for; the first one where it asks for none."""
    typed = request.GET.get("rows", "")
    return int(typed) if typed.isdecimal() and len(typed) < 7 else 1


def searched(request: HttpRequest) -> str:
    """What was typed into the search field, fit for a query."""
    return request.GET.get("q", "").replace("\x00", "").strip()[:100]
