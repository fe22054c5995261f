"""Decides where the farm may send messages: to public addresses, and to inner networks that the administrator listed.

A name is resolved once, and the connection goes to that answer, so that a second answer cannot lead elsewhere. An
address that wraps another one (IPv4 in IPv6 by mapping, NAT64, 6to4 or Teredo) is judged by that one.

This module imports no Django, because farm.alerts.channels.messenger uses it in a separate process.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass
from urllib.parse import urlsplit

from farm.alerts.channels.channel_kind import DeliveryProblem

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# as socket.getaddrinfo answers: family, type, protocol, canonical name, host and port
Answers = Sequence[tuple[int, int, int, str, tuple[object, ...]]]
LookUp = Callable[..., Answers]

# how long the look-up of a name may take
RESOLVE_S = 5.0
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# networks that Python 3.11 calls global although they are not: a network's own NAT64 (RFC 8215), retired 6to4 relays,
# segment routing, and documentation
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network) for network in ("64:ff9b:1::/48", "192.88.99.0/24", "5f00::/16", "3fff::/20")
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")
# names are looked up in these threads, because a resolver that hangs cannot be stopped
_resolvers = ThreadPoolExecutor(max_workers=8, thread_name_prefix="resolve")


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """The parts of a webhook's URL. `path` includes the query."""

    host: str
    port: int
    path: str
    is_tls: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook's URL, and the IP address to connect to."""

    url: WebhookUrl
    address: Address


def resolve_target(url: str, *, networks: Sequence[str] = (), lookup: LookUp | None = None) -> Target:
    """Parse a webhook's URL and look up its host.

    `networks` are the inner networks that are allowed; only these may use plain HTTP. `lookup` replaces the resolver.
    Raises DeliveryProblem, which is permanent for a URL or an address that is refused.
    """
    parsed = parse_webhook_url(url)
    address = resolve_host(parsed.host, parsed.port, networks=networks, lookup=lookup)
    if not parsed.is_tls and is_allowed(address):
        raise _make_refusal(f"{parsed.host} is a public address: a webhook's address there starts with https://.")
    return Target(parsed, address)


def parse_webhook_url(url: str) -> WebhookUrl:
    """Parse a URL; its host is not looked up.

    Raises a permanent DeliveryProblem for a URL that cannot be read, of another scheme than http and https, with a user
    or password, or with spaces or control characters.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise _make_refusal(f"The webhook's address cannot be read: {problem}.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _make_refusal("A webhook's address starts with https:// and names a host.")
    if parts.username is not None or parts.password is not None:
        raise _make_refusal("A webhook's address holds no user and no password: the message is signed instead.")
    if any(ord(sign) <= 32 or ord(sign) == 127 for sign in url):
        raise _make_refusal("A webhook's address holds no spaces and no control characters.")
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookUrl(parts.hostname, port or (443 if is_tls else 80), path, is_tls)


def resolve_host(host: str, port: int, *, networks: Sequence[str] = (), lookup: LookUp | None = None) -> Address:
    """Look up a host and return the address to connect to. `lookup` replaces the resolver.

    Raises DeliveryProblem where the name has no address, and a permanent one where any of its addresses is refused.
    """
    allowed = [ipaddress.ip_network(network, strict=False) for network in networks]
    addresses = _look_up(host, port, lookup or socket.getaddrinfo)
    for address in addresses:
        if not is_allowed(address, allowed):
            raise _make_refusal(
                f"{host} leads to an address inside a network, which messages may not reach. Use a public address, or "
                "ask this farm's administrator to list the network in ONNXFARM_WEBHOOK_NETWORKS."
            )
    return addresses[0]


def is_allowed(address: Address, networks: Iterable[Network] = ()) -> bool:
    """Say whether messages may go to this address: it, or each address that it wraps, is public or in `networks`."""
    return all(_is_public(ip) or any(ip in network for network in networks) for ip in unwrap_address(address))


def unwrap_address(address: Address) -> list[Address]:
    """Return the addresses that this one wraps (as NAT64 or Teredo do), or only itself where it wraps none."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _COMPATIBLE and int(address) > 1:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address]


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not any(address in network for network in _NOT_PUBLIC)
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not (isinstance(address, ipaddress.IPv6Address) and address.is_site_local)
    )


def _look_up(host: str, port: int, lookup: LookUp) -> list[Address]:
    future = _resolvers.submit(lookup, host, port, type=socket.SOCK_STREAM)
    try:
        answers = future.result(timeout=RESOLVE_S)
    except TooLate:
        raise DeliveryProblem(f"The name {host} was not resolved within {RESOLVE_S:.0f} s.") from None
    except (OSError, UnicodeError) as problem:
        raise DeliveryProblem(f"The name {host} cannot be resolved: {problem}.") from None
    # an IPv6 address may end with a zone, such as %eth0
    addresses = [ipaddress.ip_address(str(socket_address[0]).partition("%")[0]) for *_, socket_address in answers]
    if not addresses:
        raise DeliveryProblem(f"The name {host} has no address.")
    return list(dict.fromkeys(addresses))


def _make_refusal(text: str) -> DeliveryProblem:
    return DeliveryProblem(text, is_permanent=True)
