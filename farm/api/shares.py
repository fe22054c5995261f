"""Share links: public addresses that show one thing, read-only, for a while."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from farm.accounts.models import Share
from farm.accounts.selectors import share as share_of
from farm.accounts.selectors import shares_visible_to
from farm.accounts.services import SHARE_DAYS, revoke_share
from farm.accounts.states import ShareKind
from farm.api.auth import person
from farm.api.shapes import StrictSchema
from farm.runs.services import share_links

router = Router(tags=["shares"])
MAX_LISTED = 200


class ShareIn(StrictSchema):
    """`subject`: a run `12`, a cell `12:c5`, a model `7` (also for `hardware`), or two to four cells `12:c1,12:c5`."""

    kind: ShareKind = Field(description="what is shown")
    subject: str = Field(
        min_length=1,
        max_length=400,
        description="a run `12`, a cell `12:c5`, a model `7` (also for kind hardware), or two to four cells to compare "
        "`12:c1,12:c5`",
    )
    days: int = Field(default=30, ge=1, le=SHARE_DAYS, description="for how long")


class ShareOut(Schema):
    id: int = Field(description="the link's number")
    kind: ShareKind = Field(description="what it shows")
    subject: str = Field(description="which of these, as it was asked for")
    title: str = Field(description="that in words")
    by: str = Field(description="who made it")
    created_at: datetime = Field(description="when it was made")
    expires_at: datetime = Field(description="when it expires")
    revoked_at: datetime | None = Field(description="when it was revoked; null: it was not")
    last_opened_at: datetime | None = Field(description="when it was last opened, to the minute; null: never")
    is_open: bool = Field(description="whether it shows anything now")


class NewShareOut(ShareOut):
    """`url`: shown this once; the farm keeps its digest alone."""

    url: str = Field(description="the link, shown once; the farm keeps only its digest")


@router.get("/shares", response=list[ShareOut])
def shares(request: HttpRequest) -> list[Share]:
    """The newest share links of your teams, without their addresses."""
    return list(shares_visible_to(person(request))[:MAX_LISTED])


@router.post("/shares", response={201: NewShareOut})
def create_share(request: HttpRequest, payload: ShareIn) -> Status[NewShareOut]:
    """A public link to a run, a cell, a model or a comparison. Whoever has it sees that page, and nothing else."""
    share, url = share_links.share(kind=payload.kind, subject=payload.subject, by=person(request), days=payload.days)
    return Status(201, NewShareOut(**ShareOut.from_orm(share).dict(), url=url))


@router.delete("/shares/{int:share_id}", response=ShareOut)
def delete_share(request: HttpRequest, share_id: int) -> Share:
    """Close a link now. It stays in the list and in the audit log."""
    user = person(request)
    return revoke_share(share=share_of(user, share_id), by=user)
