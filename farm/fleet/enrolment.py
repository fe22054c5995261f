"""Makes the commands for a machine that joins the farm, and explains why no machine or browser can join."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from farm.fleet.farm_wheel import build_farm_wheel

# where the farm serves its own wheel, below its public address
INSTALL = "/install/"
ENVIRONMENT = "onnxfarm-node"
START = "onnxfarm node start"
# the page that makes a browser a node; the gateway serves it, so that nothing of it asks another site
TAB = "/api/node/v1/tab/index.html"


@dataclass(frozen=True, slots=True)
class JoinCommands:
    """The commands for a machine that joins, in the order in which they are typed."""

    install: str
    enroll: str
    start: str
    # why other machines cannot join; empty where they can
    warning: str
    # the address at which a browser joins instead; empty where none can, and the warning then says why
    tab: str
    tab_warning: str


def make_join_commands(code: str) -> JoinCommands:
    """Make the commands by which a machine joins with this enrolment code, and the warnings where none can join.

    The code is not checked. Raises NoWheelError where the farm's own files are not found.
    """
    return JoinCommands(
        install=make_install_command(),
        enroll=f"onnxfarm node enroll {settings.GATEWAY_URL} --token {code}",
        start=START,
        warning=explain_unreachable_address(),
        tab="" if explain_unusable_tab_address() else f"{settings.GATEWAY_URL}{TAB}#{code}",
        tab_warning=explain_unusable_tab_address(),
    )


def make_install_command() -> str:
    """Make the shell command that installs the farm's own wheel, checked by its sha256, into a virtual environment.

    Its quotes work in POSIX shells and on Windows. The command names a link and not an index: otherwise pip would also
    ask the public index, where anybody may register the name. Raises NoWheelError where the farm's own files are not
    found.
    """
    return (
        f"python3 -m venv {ENVIRONMENT} && . {ENVIRONMENT}/bin/activate && "
        f'pip install "onnxfarm[node] @ {make_wheel_link()}"'
    )


def make_wheel_link() -> str:
    wheel = build_farm_wheel()
    return f"{settings.PUBLIC_URL}{INSTALL}{wheel.name}#sha256={wheel.sha256}"


def explain_unreachable_address() -> str:
    """Say why other machines cannot reach this farm, and what to set; empty where they may.

    It looks only at whether the public or the gateway's address is one of this machine; the first of them is named.
    """
    names = (("ONNXFARM_PUBLIC_URL", settings.PUBLIC_URL), ("ONNXFARM_GATEWAY_URL", settings.GATEWAY_URL))
    for name, url in names:
        if problem := explain_local_address(url):
            return (
                f"{problem} To add them, start it with "
                "onnxfarm serve --tls-cert FILE --tls-key FILE, or put it behind a proxy with TLS and set "
                f"{name} to its https:// address (docs/operations.md)."
            )
    return ""


def explain_local_address(url: str) -> str:
    """Say that other machines cannot reach this address, as it is of this machine; empty where they may."""
    return f"Other machines cannot reach {url}: it is an address of this machine only." if _is_local(url) else ""


def explain_unusable_tab_address() -> str:
    """Say why no browser can join at this farm's address, and what to set; empty where a browser can.

    Browsers keep keys and share memory between threads only at https:// addresses, and on their own machine.
    """
    url = settings.GATEWAY_URL
    if url.startswith("https://") or _is_local(url):
        return ""
    return (
        f"Browsers cannot join at {url}: they keep keys and run threads for https:// addresses only. Put the farm "
        "behind a proxy with TLS (deploy/Caddyfile, docs/operations.md) and set ONNXFARM_PUBLIC_URL and "
        "ONNXFARM_GATEWAY_URL to its https:// addresses."
    )


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
