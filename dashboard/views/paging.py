"""Lists page by page; the page's number is part of the address."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

PER_PAGE = 50


def paged(request: HttpRequest, rows: QuerySet[Any]) -> Page[Any]:
    """The page that the address names; the nearest there is for a number that is none."""
    return Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))


def searched(request: HttpRequest) -> str:
    """What was typed into the search field, fit for a query."""
    return request.GET.get("q", "").replace("\x00", "").strip()[:100]
