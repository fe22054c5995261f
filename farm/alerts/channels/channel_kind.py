"""A kind of channel: what its address looks like, what of the address is secret, and how a message is sent there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


class DeliveryProblem(Exception):
    """Why a message did not arrive or an address cannot be used, in one sentence for people.

    `is_permanent`: trying again would not help.
    """

    def __init__(self, text: str, *, is_permanent: bool = False) -> None:
        super().__init__(text)
        self.is_permanent = is_permanent


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `id` is the same at every try, so that a receiver drops a repetition; `secret` signs it."""

    id: str
    subject: str
    text: str
    payload: Mapping[str, object]
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """One kind of channel.

    `name`: in rows and over HTTP. `title` and `takes`: on pages, its title and what its address is. `check`: checks the
    form of an address; where it leads is looked up for each message. `send`: sends a message to an address within a
    minute. Both raise DeliveryProblem. `shown`: returns the address without what may be secret in it. `is_signed`: the
    receiver needs the channel's secret, which the team's admins may see.
    """

    name: str
    title: str
    takes: str
    check: Callable[[str], None]
    send: Callable[[Message, str], None]
    shown: Callable[[str], str] = lambda target: "…"
    is_signed: bool = False
