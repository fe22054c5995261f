"""Lists page by page; the page's number is part of the address."""

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


def searched(request: HttpRequest) -> str:
    """What was typed into the search field, fit for a query."""
    return request.GET.get("q", "").replace("\x00", "").strip()[:100]
