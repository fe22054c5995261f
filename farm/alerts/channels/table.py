"""The kinds of channels: ours, one file each, and those of the packages that are installed here."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from farm.alerts.channels import apprise, mail, webhook
from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem
from farm.base.entry_points import Group, raise_first_problem

logger = logging.getLogger(__name__)
OWN = (mail.KIND, webhook.KIND, apprise.KIND)
# lengths of the texts of a kind that a package brings
MAX_TITLE, MAX_TAKES = 40, 120
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def _check_entry(entry: ChannelKind, earlier: Sequence[ChannelKind]) -> ChannelKind:
    """Check a kind that a package brings, and return it with a `shown` that never raises but hides the address."""
    raise_first_problem(_list_faults(entry, taken_names=[kind.name for kind in (*OWN, *earlier)]))

    def show_or_hide(target: str) -> str:
        try:
            return str(entry.shown(target))
        except Exception:
            logger.exception("an address could not be shown")
            return "…"

    return replace(entry, shown=show_or_hide)


def _list_faults(entry: ChannelKind, *, taken_names: Sequence[str]) -> Iterator[str]:
    if not isinstance(entry.name, str) or not _NAME.fullmatch(entry.name):
        yield f"name has {entry.name!r:.80}: write small letters, digits, - and _, 32 at most."
    elif entry.name in taken_names:
        yield f"{entry.name!r} is taken."
    texts: dict[str, tuple[object, int]] = {"title": (entry.title, MAX_TITLE), "takes": (entry.takes, MAX_TAKES)}
    for field, (text, limit) in texts.items():
        if not isinstance(text, str) or not 0 < len(text) <= limit or not text.isprintable():
            yield f"{field} has {text!r:.200}: write a few words, {limit} characters at most."
    functions: dict[str, object] = {"check": entry.check, "send": entry.send, "shown": entry.shown}
    for field, function in functions.items():
        if not callable(function):
            yield f"{field} has {function!r:.80}: write a function."


GROUP = Group("onnxfarm.channels", ChannelKind, "channel", _check_entry)
KINDS: Mapping[str, ChannelKind] = {kind.name: kind for kind in (*OWN, *GROUP.load_installed().entries)}


def find_kind(name: str) -> ChannelKind:
    """Find a kind by its name. For an unknown name, return a kind whose `check` and `send` raise DeliveryProblem."""

    def refuse(*_: object) -> None:
        raise DeliveryProblem(f"No channel of the kind “{name}” is installed here: install the package that brings it.")

    return KINDS.get(name) or ChannelKind(name=name, title=name, takes="", check=refuse, send=refuse)
