"""Sends to chat and paging services through apprise, in a separate process, with listed services and parameters only.

An apprise address may do more than name a receiver: `template=` fetches a file or an address, `discovery=` asks a host
where the real one is, `verify=no` trusts any certificate, and `redirect=yes` follows redirects. So services and
parameters are lists of what is allowed. The address is written anew from the parsed one, so that apprise sees only what
was checked.
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
# how long sending one notice may take, with the pauses that a service asks for
TOTAL_S = 30.0
# variables that say where Python and the operator's certificates are. Others may hold the farm's secrets, or name a
# proxy, which would look names up itself
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
# by scheme, the parameters that name a receiver or the look of a message; none of them fetches anything
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
# parameters that every address gets: short timeouts, no redirects; for Matrix no discovery and no stored keys
_ALWAYS: Final = {"cto": "4", "rto": "8", "redirect": "no", "verify": "yes"}
_OF_SCHEME: Final = {"matrixs": {"discovery": "no", "e2ee": "no"}}


def check(url: str) -> None:
    """Check that this address is allowed and that apprise accepts it. Raises a permanent DeliveryProblem."""
    address = build_address(url)
    if messenger.load_notifier(address) is None:
        scheme = address.partition(":")[0]
        raise DeliveryProblem(
            f"Apprise does not accept this {scheme}:// address: check its documentation.", is_permanent=True
        )


def notify(url: str, *, subject: str, text: str, networks: Sequence[str] = (), timeout_s: float = TOTAL_S) -> None:
    """Send one notice from a separate process. `networks` are the inner networks that may be reached.

    Raises DeliveryProblem where the service did not take the notice within `timeout_s`, and a permanent one for an
    address that is not allowed. After a second try the receiver may see the notice twice, because these services do not
    recognise repetitions.
    """
    address = build_address(url)
    scheme = address.partition(":")[0]
    order = {"url": address, "subject": defuse(subject), "text": defuse(text), "networks": list(networks)}
    with tempfile.TemporaryDirectory(prefix="onnxfarm-notice-") as folder:
        environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        environment |= {"HOME": folder, "PYTHONPATH": str(_ROOT), "NO_PROXY": "*"}
        try:
            process = subprocess.run(
                [sys.executable, "-P", "-m", messenger.__name__],
                input=json.dumps(order), capture_output=True, text=True, check=False,
                timeout=timeout_s, cwd=folder, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DeliveryProblem(f"The {scheme}:// service did not finish within {timeout_s:.0f} s.") from None
    _raise_problem(process.stdout, scheme)


def defuse(text: str) -> str:
    """Replace `<` and `>`, and break up `@…`, so that services read no mention, command or link in the text."""
    return text.replace("<", "‹").replace(">", "›").replace("@", f"@{WORD_JOINER}")


def _raise_problem(output: str, scheme: str) -> None:
    """Raise the DeliveryProblem that the process printed, or one for an answer that cannot be read."""
    try:
        answer = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise DeliveryProblem(f"Internal error while sending to the {scheme}:// service.") from None
    if answer["problem"] is not None:
        raise DeliveryProblem(f"{scheme}://: {answer['problem']}", is_permanent=answer["is_permanent"])


def build_address(url: str) -> str:
    """Write the address for apprise, with the parameters that the farm sets.

    Raises a permanent DeliveryProblem, which lists the allowed schemes or parameters, for an address that is refused.
    """
    head, _, query = url.partition("?")
    scheme, colon, place = head.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in PARAMETERS:
        raise _make_refusal(
            f"The scheme {scheme[:20] or '(none)'}:// is not allowed here; allowed are {', '.join(sorted(PARAMETERS))}."
        )
    if not url.isprintable() or any(sign in url for sign in " \\"):
        raise _make_refusal(f"A {scheme}:// address holds no spaces, no backslashes and no control characters.")
    named = _parse_query(query)
    if unknown := sorted(named.keys() - PARAMETERS[scheme]):
        raise _make_refusal(
            f"The parameter {', '.join(unknown)[:100]} is not allowed in a {scheme}:// address; "
            f"allowed are {', '.join(sorted(PARAMETERS[scheme]))}."
        )
    parameters = {**named, **_ALWAYS, **_OF_SCHEME.get(scheme, {})}
    return f"{scheme}://{place}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())


def _parse_query(query: str) -> dict[str, str]:
    """Parse a query as apprise does: `;` separates like `&`, and the last of equal names (in lower case) counts."""
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
    # some services have their secret where other addresses have the host
    shown=lambda url: f"{url.partition('://')[0]}://…",
)
