"""Channels over HTTP, with their test and their messages. Changing them needs the scope `admin`."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from farm.accounts.selectors import team_to_write
from farm.accounts.states import Scope
from farm.alerts.models import Channel, Delivery
from farm.alerts.selectors import channels as selectors
from farm.alerts.services import channels
from farm.api.auth import person, require_scope
from farm.api.shapes import Paging, StrictSchema

router = Router(tags=["channels"])
OF_KIND = f"one of {', '.join(kind.name for kind in selectors.kinds())}, or what a package adds"


class ChannelIn(StrictSchema):
    """A channel to be made."""

    name: str = Field(max_length=100, description="its name")
    kind: str = Field(max_length=32, description=OF_KIND)
    target: str = Field(max_length=2000, description="an address or URL")
    digest: str = Field(default="never", max_length=20, description="never, day or week: what gathers in one message")
    team: str = Field(
        default="", max_length=100, description="the team it belongs to; may be left out where you write in one alone"
    )


class Switched(StrictSchema):
    is_active: bool = Field(description="whether it is notified")


class ChannelOut(Schema):
    """`target` is shortened: it may hold secrets."""

    id: int = Field(description="the channel's number")
    name: str = Field(description="its name")
    team: str = Field(validation_alias="team.name", description="the team it belongs to")
    kind: str = Field(description=OF_KIND)
    target: str = Field(description="its address, shortened: it may hold secrets")
    digest: str = Field(description="never, day or week")
    is_active: bool = Field(description="whether it is notified")
    created_at: datetime = Field(description="when it was made")

    @staticmethod
    def resolve_target(channel: Channel) -> str:
        return selectors.shown_target(channel)


class SecretOut(Schema):
    """What a channel's messages are signed with, as standardwebhooks.com's libraries take it."""

    secret: str = Field(description="whsec_…, as the libraries of standardwebhooks.com take it")


class DeliveryOut(Schema):
    """`state`: waiting, sending, sent or failed; `problem`: why the last try did not arrive."""

    id: int = Field(description="the delivery's number")
    kind: str = Field(description="the event it reports")
    subject: str = Field(description="its subject")
    state: str = Field(description="waiting, sending, sent or failed")
    tries: int = Field(description="how often it was tried")
    problem: str = Field(description="why the last try did not arrive; empty: it did, or none was made")
    message_id: str = Field(description="the same in every try of one message, as receivers may compare")
    created_at: datetime = Field(description="when it was written")
    due_at: datetime = Field(description="when it is tried next")
    sent_at: datetime | None = Field(description="when it arrived; null: it has not")


@router.get("/channels", response=list[ChannelOut])
def list_channels(request: HttpRequest, paging: Query[Paging]) -> list[Channel]:
    """Channels of your teams, by name."""
    return list(paging.slice(selectors.channels_visible_to(person(request))))


@router.post("/channels", response={201: ChannelOut})
def create_channel(request: HttpRequest, payload: ChannelIn) -> Status[Channel]:
    """Create a channel of a team that you manage."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    channel = channels.create_channel(
        team=team_to_write(user, name=payload.team),
        by=user,
        name=payload.name,
        kind=payload.kind,
        target=payload.target,
        digest=payload.digest,
    )
    return Status(201, channel)


@router.get("/channels/{int:channel_id}", response=ChannelOut)
def read_channel(request: HttpRequest, channel_id: int) -> Channel:
    """Read a channel."""
    return selectors.channel(person(request), channel_id)


@router.patch("/channels/{int:channel_id}", response=ChannelOut)
def switch_channel(request: HttpRequest, channel_id: int, payload: Switched) -> Channel:
    """Turn a channel on or off."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    channel = selectors.channel(user, channel_id)
    return channels.switch_channel(channel=channel, by=user, is_active=payload.is_active)


@router.delete("/channels/{int:channel_id}", response={204: None})
def remove_channel(request: HttpRequest, channel_id: int) -> Status[None]:
    """Delete a channel and its messages."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    channels.remove_channel(channel=selectors.channel(user, channel_id), by=user)
    return Status(204, None)


@router.post("/channels/{int:channel_id}/test", response={202: DeliveryOut})
def test_channel(request: HttpRequest, channel_id: int) -> Status[Delivery]:
    """Send a test message to a channel; whether it arrived is listed under `deliveries`."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    return Status(202, channels.test_channel(channel=selectors.channel(user, channel_id), by=user))


@router.get("/channels/{int:channel_id}/deliveries", response=list[DeliveryOut])
def list_deliveries(request: HttpRequest, channel_id: int, paging: Query[Paging]) -> list[Delivery]:
    """Messages to a channel, newest first, with those that failed."""
    return list(paging.slice(selectors.deliveries_of(selectors.channel(person(request), channel_id))))


@router.get("/channels/{int:channel_id}/secret", response=SecretOut)
def read_secret(request: HttpRequest, channel_id: int) -> SecretOut:
    """The secret that signs a channel's messages, for the receiver. 400 for a kind that does not sign."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    return SecretOut(secret=channels.read_secret(channel=selectors.channel(user, channel_id), by=user))


@router.post("/channels/{int:channel_id}/secret", response=SecretOut)
def renew_secret(request: HttpRequest, channel_id: int) -> SecretOut:
    """Replace the secret that signs a channel's messages."""
    require_scope(request, Scope.ADMIN)
    user = person(request)
    return SecretOut(secret=channels.renew_secret(channel=selectors.channel(user, channel_id), by=user))
