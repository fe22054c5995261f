"""What is typed on a machine that joins, and what keeps other machines out."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from farm.fleet.own_wheel import own_wheel

# where the farm serves its own wheel, below its public address
INSTALL = "/install/"
ENVIRONMENT = "onnxfarm-node"
START = "onnxfarm node start"


@dataclass(frozen=True, slots=True)
class Joining:
    """Commands for the machine that joins, in the order in which they are typed. `warning`: empty where none is due."""

    install: str
    enroll: str
    start: str
    warning: str


def joining(code: str) -> Joining:
    """How a machine joins with this one-off code."""
    return Joining(
        install=install_command(),
        enroll=f"onnxfarm node enroll {settings.GATEWAY_URL} --token {code}",
        start=START,
        warning=address_warning(),
    )


def install_command() -> str:
    """Installs the farm's own release into an environment of its own, from the farm, checked by its digest.

    Quoted so that POSIX shells and Windows take it; a link and not an index, for whoever registers the name on a public
    index would else be asked too.
    """
    return (
        f"python3 -m venv {ENVIRONMENT} && . {ENVIRONMENT}/bin/activate && "
        f'pip install "onnxfarm[node] @ {wheel_link()}"'
    )


def wheel_link() -> str:
    """The wheel's address with the digest that pip and uv check."""
    wheel = own_wheel()
    return f"{settings.PUBLIC_URL}{INSTALL}{wheel.name}#sha256={wheel.sha256}"


def address_warning() -> str:
    """Why other machines cannot reach this farm, and what to set; empty where they may."""
    names = (("ONNXFARM_PUBLIC_URL", settings.PUBLIC_URL), ("ONNXFARM_GATEWAY_URL", settings.GATEWAY_URL))
    local = {name: url for name, url in names if _is_local(url)}
    if not local:
        return ""
    name, url = next(iter(local.items()))
    return (
        f"Other machines cannot reach {url}: it is an address of this machine only. To add them, put the farm behind "
        f"a proxy with TLS and set {name} to its https:// address (docs/operations.md). A farm of onnxfarm serve or "
        "deploy/quickstart always serves this machine only."
    )


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
