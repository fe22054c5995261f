"""What a kind of channel is: what its address looks like, what of it is secret, and how a message goes there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


class DeliveryProblem(Exception):
    """Why a message did not arrive, or an address cannot be used: one sentence for people.

    `is_permanent`: trying again would change nothing.
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

    `name`: in rows and over HTTP. `title` and `takes`: on pages, what it is called and what its address is. `check`:
    whether an address has the right form; where it leads is looked up at each message. `shown`: an address without what
    may be secret in it. `send`: a message to an address, over within a minute. Both raise DeliveryProblem. `is_signed`:
    the receiver needs the channel's secret, which its admins may see.
    """

    name: str
    title: str
    takes: str
    check: Callable[[str], None]
    send: Callable[[Message, str], None]
    shown: Callable[[str], str] = lambda target: "…"
    is_signed: bool = False
