"""Chat and paging services through apprise: listed services and parameters, sent by a process of its own.

Apprise takes more from an address than where to send: `template=` fetches a file or an address, `discovery=` asks a
host where the real one is, `verify=no` believes any certificate, `redirect=yes` goes wherever the answer points. So
both are lists of what is allowed. The address is written anew from what was read, so that apprise reads nothing else.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from django.conf import settings

from farm.alerts.channels import messenger
from farm.alerts.channels.channel_kind import ChannelKind, DeliveryProblem

WORD_JOINER = "\u2060"
# for sending one notice, with the pauses that a service asks for
TOTAL_S = 30.0
# where Python and the operator's certificates are; nothing of the farm's own, and no proxy, which would look names up
_VARIABLES = (
    "PATH",
    "LANG",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)
_ROOT = Path(__file__).resolve().parents[3]

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


def check(url: str) -> None:
    """Check that this address is allowed and that apprise accepts it. Raises DeliveryProblem with what is allowed."""
    address = build_address(url)
    if messenger.load_notifier(address) is None:
        scheme = address.partition(":")[0]
        raise DeliveryProblem(
            f"Apprise does not accept this {scheme}:// address: check its documentation.", is_permanent=True
        )


def notify(url: str, *, subject: str, text: str, networks: Sequence[str] = (), timeout_s: float = TOTAL_S) -> None:
    """Send one notice from a process of its own. Raises DeliveryProblem where it did not arrive within `timeout_s`.

    The services give no way to recognise a repetition. `networks`: inner ones that may be reached.
    """
    address = build_address(url)
    scheme = address.partition(":")[0]
    order = {"url": address, "subject": defuse(subject), "text": defuse(text), "networks": list(networks)}
    with tempfile.TemporaryDirectory(prefix="onnxfarm-notice-") as folder:
        environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        environment |= {"HOME": folder, "PYTHONPATH": str(_ROOT), "NO_PROXY": "*"}
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", messenger.__name__],
                input=json.dumps(order), capture_output=True, text=True, check=False,
                timeout=timeout_s, cwd=folder, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DeliveryProblem(f"The {scheme}:// service did not finish within {timeout_s:.0f} s.") from None
    _raise_problem(done.stdout, scheme)


def defuse(text: str) -> str:
    """Change what these services take for a command, as `<!channel>`, `@everyone` or a link, so that it stays text."""
    return text.replace("<", "‹").replace(">", "›").replace("@", f"@{WORD_JOINER}")


def _raise_problem(output: str, scheme: str) -> None:
    try:
        answer = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise DeliveryProblem(f"Internal error while sending to the {scheme}:// service.") from None
    if answer["problem"] is not None:
        raise DeliveryProblem(f"{scheme}://: {answer['problem']}", is_permanent=answer["is_permanent"])


def build_address(url: str) -> str:
    """Write the address that apprise is given, with the parameters that the farm sets. Raises DeliveryProblem with the
    schemes or parameters that are allowed."""
    head, _, query = url.partition("?")
    scheme, colon, place = head.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in PARAMETERS:
        raise _make_refusal(
            f"The scheme {scheme[:20] or '(none)'}:// is not allowed here; allowed are {', '.join(sorted(PARAMETERS))}."
        )
    if not url.isprintable() or any(sign in url for sign in " \\"):
        raise _make_refusal(f"A {scheme}:// address holds no spaces, no backslashes and no control characters.")
    given = _parameters(query)
    if unknown := sorted(given.keys() - PARAMETERS[scheme]):
        raise _make_refusal(
            f"The parameter {', '.join(unknown)[:100]} is not allowed in a {scheme}:// address; "
            f"allowed are {', '.join(sorted(PARAMETERS[scheme]))}."
        )
    parameters = {**given, **_ALWAYS, **_OF_SCHEME.get(scheme, {})}
    return f"{scheme}://{place}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())


def _parameters(query: str) -> dict[str, str]:
    """Parse a query as apprise does: `;` separates as `&` does, names are in lower case, the last one counts."""
    pairs = (pair.partition("=") for pair in query.replace(";", "&").split("&") if pair)
    return {unquote(name).strip().lower(): unquote(value).strip() for name, _, value in pairs}


def _make_refusal(text: str) -> DeliveryProblem:
    return DeliveryProblem(text, is_permanent=True)


KIND = ChannelKind(
    name="apprise",
    title="Apprise",
    takes="Slack, Teams, Discord, Matrix and others by their apprise address",
    check=check,
    send=lambda message, url: notify(
        url, subject=message.subject, text=message.text, networks=settings.WEBHOOK_NETWORKS
    ),
    # it may hold its secret where a host stands
    shown=lambda url: f"{url.partition('://')[0]}://…",
)
