"""What an address says of a list: its page, its part, its search, and the rows that it names by their numbers."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 50


def paged(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """The page that the address names; the nearest there is for a number that is none."""
    return Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))


def part_of(request: HttpRequest) -> int:
    """Which part of a large map the address asks for; the first one where it asks for none."""
    typed = request.GET.get("rows", "")
    return int(typed) if typed.isdecimal() and len(typed) < 7 else 1


def is_row_number(typed: str) -> bool:
    """Whether a text of an address or a form is the number of a row: so many digits fit what databases count with."""
    return typed.isdecimal() and len(typed) < 19


def searched(request: HttpRequest) -> str:
    """What was typed into the search field, fit for a query."""
    return request.GET.get("q", "").replace("\x00", "").strip()[:100]
