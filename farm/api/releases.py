"""The report card of a release over HTTP."""

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from farm.alerts.selectors.release_cards import read_card
from farm.api.auth import person
from farm.api.shapes import fill
from farm.contract.api.releases import (
    ReleaseCardOut,
    ReleaseModelOut,
    ReleaseOpenOut,
    ReleasePlaceOut,
    ReleaseWorkAroundOut,
)
from farm.rules.changes.release_card import Place

router = Router(tags=["alerts"])


class Against(Schema):
    against: str = Field(default="", max_length=64, description="an older version; left out: the one before")


@router.get("/releases/{distribution}/{version}", response=ReleaseCardOut)
def read_release(request: HttpRequest, distribution: str, version: str, query: Query[Against]) -> ReleaseCardOut:
    """What a release made slower or wrong, on which models and nodes, and what takes it back."""
    release_card = read_card(person(request), distribution, version, against=query.against)
    card = release_card.card
    return ReleaseCardOut(
        url=f"{settings.PUBLIC_URL}/releases/{card.new.distribution}/{card.new.version}/",
        release=str(card.new),
        against=str(card.old) if card.old else None,
        others=list(release_card.others),
        headline=card.headline,
        because=card.because,
        models=[
            ReleaseModelOut(
                id=row.model,
                name=row.name,
                is_clean=row.is_clean,
                nodes=[_shape_place(node, place) for node, place in sorted(row.places.items())],
            )
            for row in card.rows
        ],
        work_arounds=[
            fill(ReleaseWorkAroundOut, work_around, model=work_around.name) for work_around in release_card.work_arounds
        ],
        open=[ReleaseOpenOut(model=waiting.name, run=waiting.run) for waiting in release_card.open],
        ends_at=release_card.ends_at,
        ends_at_least=release_card.ends_at_least,
    )


def _shape_place(node: str, place: Place) -> ReleasePlaceOut:
    change = place.change
    return fill(
        ReleasePlaceOut,
        place,
        node=node,
        verdict=place.sign.word,
        ratio=change.ratio if change else place.size,
        ci_low=change.low if change else None,
        ci_high=change.high if change else None,
        smallest_detectable=place.detectable,
    )
