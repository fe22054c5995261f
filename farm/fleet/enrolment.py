"""What is typed on a machine that joins, and what keeps other machines out."""

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
class Joining:
    """Commands for the machine that joins, in the order in which they are typed. `warning`: empty where none is due.

    `tab`: the address by which a browser joins instead; empty where none can, and `tab_warning` then says why.
    """

    install: str
    enroll: str
    start: str
    warning: str
    tab: str
    tab_warning: str


def make_join_commands(code: str) -> Joining:
    """How a machine joins with this one-off code."""
    return Joining(
        install=make_install_command(),
        enroll=f"onnxfarm node enroll {settings.GATEWAY_URL} --token {code}",
        start=START,
        warning=warn_of_address(),
        tab="" if warn_of_tab_address() else f"{settings.GATEWAY_URL}{TAB}#{code}",
        tab_warning=warn_of_tab_address(),
    )


def make_install_command() -> str:
    """Installs the farm's own release into an environment of its own, from the farm, checked by its digest.

    Quoted so that POSIX shells and Windows take it; a link and not an index, for whoever registers the name on a public
    index would else be asked too.
    """
    return (
        f"python3 -m venv {ENVIRONMENT} && . {ENVIRONMENT}/bin/activate && "
        f'pip install "onnxfarm[node] @ {make_wheel_link()}"'
    )


def make_wheel_link() -> str:
    wheel = build_farm_wheel()
    return f"{settings.PUBLIC_URL}{INSTALL}{wheel.name}#sha256={wheel.sha256}"


def warn_of_address() -> str:
    """Why other machines cannot reach this farm, and what to set; empty where they may."""
    names = (("ONNXFARM_PUBLIC_URL", settings.PUBLIC_URL), ("ONNXFARM_GATEWAY_URL", settings.GATEWAY_URL))
    local = {name: url for name, url in names if _is_local(url)}
    if not local:
        return ""
    name, url = next(iter(local.items()))
    return (
        f"Other machines cannot reach {url}: it is an address of this machine only. To add them, start it with "
        "onnxfarm serve --tls-cert FILE --tls-key FILE, or put it behind a proxy with TLS and set "
        f"{name} to its https:// address (docs/operations.md)."
    )


def warn_of_tab_address() -> str:
    """Why no browser can join at this address, and what to set; empty where one can.

    Browsers keep keys and share memory between threads on https:// alone, and on their own machine.
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
