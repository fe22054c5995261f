"""A kind of channel: how its addresses are checked and shown, and how a message is sent to one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


class DeliveryProblem(Exception):
    """The reason, in one sentence for people, why a message did not arrive or an address cannot be used.

    `is_permanent` says that trying again would not help.
    """

    def __init__(self, text: str, *, is_permanent: bool = False) -> None:
        super().__init__(text)
        self.is_permanent = is_permanent


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `id` is the same at every try, so that receivers can drop repetitions. `secret` signs the message."""

    id: str
    subject: str
    text: str
    payload: Mapping[str, object]
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelKind:
    """A kind of channel. `check` and `send` raise DeliveryProblem; the `check` of mail raises Invalid instead."""

    # the name of the kind in rows and over HTTP
    name: str
    # texts for pages: a title, and what kind of address it takes
    title: str
    takes: str
    # checks the form of an address; its host is looked up for each message
    check: Callable[[str], None]
    # sends a message to an address within a minute
    send: Callable[[Message, str], None]
    # returns an address without the parts that may be secret
    shown: Callable[[str], str] = lambda target: "…"
    # the receiver needs the channel's secret, which the team's admins may see
    is_signed: bool = False
