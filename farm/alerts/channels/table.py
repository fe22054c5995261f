"""The kinds of channels: ours, one file each, and those of the packages that are installed here."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from farm.alerts.channels import apprise, mail, webhook
from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem
from farm.base.entry_points import Group, raise_first_problem

logger = logging.getLogger(__name__)
OWN = (mail.KIND, webhook.KIND, apprise.KIND)
MAX_TITLE, MAX_TAKES = 40, 120
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def _check_entry(entry: ChannelKind, taken: Sequence[ChannelKind]) -> ChannelKind:
    raise_first_problem(_list_faults(entry, beside=[other.name for other in (*OWN, *taken)]))
    return replace(entry, shown=_guard(entry.shown))


def _guard(shown: Callable[[str], str]) -> Callable[[str], str]:
    """Wrap a package's function, so that an error in it hides the address instead of breaking a page."""

    def guarded(target: str) -> str:
        try:
            return str(shown(target))
        except Exception:
            logger.exception("an address could not be shown")
            return "…"

    return guarded


def _list_faults(entry: ChannelKind, *, beside: Sequence[str]) -> Iterator[str]:
    if not isinstance(entry.name, str) or not _NAME.fullmatch(entry.name):
        yield f"name has {entry.name!r:.80}: write small letters, digits, - and _, 32 at most."
    elif entry.name in beside:
        yield f"{entry.name!r} is taken."
    texts: dict[str, tuple[object, int]] = {"title": (entry.title, MAX_TITLE), "takes": (entry.takes, MAX_TAKES)}
    for what, (words, limit) in texts.items():
        if not isinstance(words, str) or not 0 < len(words) <= limit or not words.isprintable():
            yield f"{what} has {words!r:.200}: write a few words, {limit} characters at most."
    calls: dict[str, object] = {"check": entry.check, "send": entry.send, "shown": entry.shown}
    for what, call in calls.items():
        if not callable(call):
            yield f"{what} has {call!r:.80}: write a function."


GROUP = Group("onnxfarm.channels", ChannelKind, "channel", _check_entry)
KINDS: Mapping[str, ChannelKind] = {kind.name: kind for kind in (*OWN, *GROUP.installed().entries)}


def find_kind(name: str) -> ChannelKind:
    """Find a kind by its name. Where its package is not installed here, return a kind that raises DeliveryProblem to
    say so, and shows no address."""

    def refuse(*_: object) -> None:
        raise DeliveryProblem(f"No channel of the kind “{name}” is installed here: install the package that brings it.")

    return KINDS.get(name) or ChannelKind(name=name, title=name, takes="", check=refuse, send=refuse)
