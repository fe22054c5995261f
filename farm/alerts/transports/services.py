"""Apprise's services that a channel may name, and what may stand in their addresses.

Apprise takes more from an address than where to send: `template=` fetches a file or an address, `discovery=` asks a
host where the real one is, `verify=no` believes any certificate, `redirect=yes` goes wherever the answer points. So
both are lists of what is allowed. The address is written anew from what was read, so that apprise reads nothing else.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from farm.alerts.transports.problem import DeliveryProblem

_EVERYWHERE: Final = {"format", "overflow"}
# by scheme, what may be said behind the `?`: who is addressed and how it looks, nothing that is fetched from elsewhere
PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    scheme: frozenset({*names.split(), *_EVERYWHERE})
    for scheme, names in {
        "discord": "avatar flags footer footer_logo image ping thread tts",
        "gchat": "key thread token workspace",
        "gotifys": "priority",
        "matrixs": "hsreq image mode msgtype path to token version",
        "mmosts": "botname channel channels image mode team to",
        "opsgenie": "action alias batch entity priority region tags to",
        "pagerduty": "class dedup group image region severity",
        "pover": "expire interval priority sound to",
        "rockets": "avatar mode to webhook",
        "slack": "blocks footer image mode timestamp to token",
        "tgram": "content detect mdv preview silent thread to topic",
        "webex": "mode to token",
        # Microsoft Teams
        "workflows": "api-version id image pa powerautomate route routeid sig ver wrap",
    }.items()
}
# what every address gets: short timeouts, no redirects; of Matrix no other host, and no keys that are kept
_ALWAYS: Final = {"cto": "4", "rto": "8", "redirect": "no", "verify": "yes"}
_OF_SCHEME: Final = {"matrixs": {"discovery": "no", "e2ee": "no"}}


def checked_address(url: str) -> str:
    """The address as apprise is given it. Raises DeliveryProblem with the schemes or parameters that are allowed."""
    head, _, query = url.partition("?")
    scheme, colon, place = head.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in PARAMETERS:
        raise _refused(
            f"The scheme {scheme[:20] or '(none)'}:// is not allowed here; allowed are {', '.join(sorted(PARAMETERS))}."
        )
    if not url.isprintable() or any(sign in url for sign in " \\"):
        raise _refused(f"A {scheme}:// address holds no spaces, no backslashes and no control characters.")
    given = _parameters(query)
    if unknown := sorted(given.keys() - PARAMETERS[scheme]):
        raise _refused(
            f"The parameter {', '.join(unknown)[:100]} is not allowed in a {scheme}:// address; "
            f"allowed are {', '.join(sorted(PARAMETERS[scheme]))}."
        )
    said = {**given, **_ALWAYS, **_OF_SCHEME.get(scheme, {})}
    return f"{scheme}://{place}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in said.items())


def _parameters(query: str) -> dict[str, str]:
    """As apprise reads them: `;` parts them as `&` does, names are unquoted and in lower case, the last one counts."""
    pairs = (pair.partition("=") for pair in query.replace(";", "&").split("&") if pair)
    return {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs}


def _refused(text: str) -> DeliveryProblem:
    return DeliveryProblem(text, is_permanent=True)
