"""Chat and paging services through apprise, from a list of schemes that send over HTTPS and to nobody's disk."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from farm.alerts.transports.addresses import allowed_address
from farm.alerts.transports.failing import DeliveryProblem

# schemes whose service has a host of its own
FIXED = frozenset({"slack", "discord", "tgram", "gchat", "pagerduty", "opsgenie", "pover", "webex"})
# schemes whose address names a host, which has to be a public one; `workflows` is Microsoft Teams; all of them over TLS
HOSTED = frozenset({"matrixs", "mmosts", "rockets", "gotifys", "workflows"})
SCHEMES = FIXED | HOSTED
TIMEOUT = {"cto": "4", "rto": "8"}


def check(url: str) -> None:
    """Whether apprise may be given this address. Raises DeliveryProblem with the schemes that are allowed."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in SCHEMES:
        raise DeliveryProblem(
            f"The scheme {scheme[:20] or '(none)'}:// is not allowed here; allowed are {', '.join(sorted(SCHEMES))}.",
            is_permanent=True,
        )
    if _loaded(url) is None:
        raise DeliveryProblem(
            f"Apprise does not take this {scheme}:// address: compare it with its documentation.", is_permanent=True
        )


def send(url: str, *, subject: str, text: str, networks: Sequence[str] = ()) -> None:
    """Sends one notice. Raises DeliveryProblem. The services give no way to drop a repetition."""
    check(url)
    parts = urlsplit(url)
    if parts.scheme.lower() in HOSTED:
        allowed_address(parts.hostname or "", parts.port or 443, networks=networks)
    plugin = _loaded(url)
    if plugin is None or not plugin.notify(title=subject, body=text):
        raise DeliveryProblem(f"The {parts.scheme}:// service did not take the notice.")


def _loaded(url: str) -> Any:
    """Apprise's own object for the address, with short timeouts and no redirects; None when it cannot be read."""
    from apprise import Apprise

    separator = "&" if "?" in url else "?"
    limits = "&".join(f"{name}={value}" for name, value in {**TIMEOUT, "redirect": "no"}.items())
    return Apprise.instantiate(f"{url}{separator}{limits}", suppress_exceptions=True)
