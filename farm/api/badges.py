"""Badges: what the watches of a model found, as an SVG that any page may show.

The address holds a key, because a README's reader has no token. Who has it can read the badge and nothing else.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from farm.alerts.selectors import badges
from farm.api.auth import person
from farm.api.description import describe_file
from farm.registry import selectors as registry
from farm.rules.presenting.badge import draw_badge

router = Router(tags=["registry"])
CACHE_S = 300


class BadgeOut(Schema):
    """`url`: for anybody who has it; `markdown`: to be pasted into a README."""

    label: str = Field(description="the left half of the badge")
    text: str = Field(description="its right half")
    tone: str = Field(description="its colour in a word: good, bad, unsure or unknown")
    url: str = Field(description="the image, for anyone who has the address")
    markdown: str = Field(description="to be pasted into a README")


@router.get("/models/{int:model_id}/badge", response=BadgeOut)
def badge(request: HttpRequest, model_id: int) -> BadgeOut:
    """A model's badge: what it says now, and its public address."""
    model = registry.model(person(request), model_id)
    status = badges.describe_model_status(model)
    url = f"{settings.PUBLIC_URL}/api/v1/badges/{model.pk}/{badges.badge_key(model.pk)}.svg"
    page = f"{settings.PUBLIC_URL}/models/{model.pk}/"
    return BadgeOut(
        label=status.label,
        text=status.text,
        tone=status.tone,
        url=url,
        markdown=f"[![{status.label}: {status.text}]({url})]({page})",
    )


@router.get(
    "/badges/{int:model_id}/{str:key}.svg", auth=None, openapi_extra=describe_file("image/svg+xml", "the badge")
)
def badge_image(request: HttpRequest, model_id: int, key: str) -> HttpResponse:
    """The badge as an image, for anybody who has its address."""
    status = badges.describe_model_status(badges.find_badge_model(model_id, key))
    response = HttpResponse(
        draw_badge(status.label, status.text, status.tone), content_type="image/svg+xml; charset=utf-8"
    )
    response.headers["Cache-Control"] = f"public, max-age={CACHE_S}"
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
