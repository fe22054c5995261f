"""The search over everything that has a page."""

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.alerts.selectors.search import MAX_TEXT, search_everything
from farm.api.auth import person
from farm.api.shapes import fill
from farm.contract.api.registry import HitOut

router = Router(tags=["search"])


class Wanted(Schema):
    """`q`: a part of a name, the number of a run or alert, or at least the first six characters of a digest."""

    q: str = Field(
        max_length=MAX_TEXT,
        description="part of a name, a number (`12`, `run 12`, `alert 3`), or at least the first six characters of a "
        "digest",
    )


@router.get("/search", response=list[HitOut])
def search(request: HttpRequest, query: Query[Wanted]) -> list[HitOut]:
    """Models, versions, runs, nodes, alerts and watches of your teams, at most eight of each."""
    hits = search_everything(person(request), query.q)
    return [fill(HitOut, hit, url=f"{settings.PUBLIC_URL}{hit.path}") for hit in hits]
