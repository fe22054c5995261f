"""Every address of people and nodes, asked with one odd value at a time."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from django.core.signals import request_finished
from django.db import close_old_connections, transaction

from tests.integration.access.table import Line, lines
from tests.integration.access.world import OWN_NAMES, PAYLOADS, PLACE, World

# what pages read of their query
ASKED = ("page", "rows", "since", "version", "like", "run", "watch", "least")

_known: dict[tuple[str, str], tuple[set[str], set[str]]] = {}

Asked = Iterator[tuple[Line, str, dict[str, Any]]]
Sends = Callable[[World], Asked]


def breaks(world: World, sends: Sends, *, shown: Callable[[str], str] = str) -> tuple[int, set[str]]:
    """How many requests were sent, and those that were answered by a 500, as `shown` writes them."""
    wrong, asked = set(), 0
    for line, address, sent in sends(world):
        asked += 1
        status = answered(world, line, address, **sent)
        if status >= 500:
            wrong.add(f"{status}: {line.method} {shown(address)} {shown(sent.get('data', b'').decode())[:300]}")
    print(f"{asked} requests")
    return asked, wrong


def answered(world: World, line: Line, address: str, **sent: Any) -> int:
    """The status as the owner, or a node, gets it, with everything undone that it changed."""
    client = world.client("node" if line.route.startswith("api/node/") else "owner", line.route)
    client.raise_request_exception = False
    with transaction.atomic():
        answer = client.generic(line.method, f"/{address}", **sent)
        request_finished.disconnect(close_old_connections)
        answer.close()
        request_finished.connect(close_old_connections)
        transaction.set_rollback(True)
    return int(answer.status_code)


def in_addresses(world: World, odd: Sequence[str]) -> Asked:
    """In each place of an address's path; `odd` as an address writes it."""
    for line in lines():
        for place in _places(line):
            for value in odd:
                yield line, _named(world, line, **{place: "ODD"}).replace("ODD", value), {}


def in_queries(world: World, odd: Sequence[str]) -> Asked:
    """As each name of a query that its description or a page knows."""
    known = _described(world)
    for line in lines():
        _, query = known.get((line.method, _plain_route(line)), (set(), set()))
        names = query if line.route.startswith("api/") else set(ASKED) if line.method == "GET" else set()
        for name in sorted(names):
            for value in odd:
                yield line, f"{_named(world, line)}?{name}={value}", {}


def in_bodies(world: World, odd: Sequence[str]) -> Asked:
    """In each field of a JSON body that was right; `odd` as JSON writes it, or would not."""
    known = _described(world)
    for line in lines():
        if line.method not in ("POST", "PATCH", "PUT") or not line.route.startswith("api/"):
            continue
        fields, _ = known.get((line.method, _plain_route(line)), (set(), set()))
        try:
            plain = json.loads(json.dumps(_right(world, line)))
        except TypeError:  # files
            continue
        for field in sorted(fields | set(plain)):
            for value in odd:
                content = json.dumps({**plain, field: "ODD"}).replace('"ODD"', value)
                yield line, _named(world, line), {"data": content.encode(), "content_type": "application/json"}


def in_forms(world: World, odd: Sequence[str]) -> Asked:
    """In each field of what a page's form sends; `odd` as an address writes it."""
    kind = "application/x-www-form-urlencoded"
    for line in lines():
        if line.method != "POST" or line.route.startswith("api/"):
            continue
        known = _right(world, line)
        for field in sorted(known):
            for value in odd:
                sent = "&".join(f"{name}={value if name == field else right}" for name, right in known.items())
                yield line, _named(world, line), {"data": sent.encode(), "content_type": kind}


def _right(world: World, line: Line) -> dict[str, Any]:
    made = PAYLOADS.get(f"{line.method} {line.route}")
    known = made(world) if made else {}
    return known if isinstance(known, dict) else {}


def _named(world: World, line: Line, **odd: str) -> str:
    names = world.names | OWN_NAMES.get(line.route, {})
    return PLACE.sub(lambda match: quote(odd.get(match[1], str(names.get(match[1], "x")))), line.route)


def _places(line: Line) -> list[str]:
    return [match[1] for match in PLACE.finditer(line.route)]


def _plain_route(line: Line) -> str:
    return PLACE.sub(lambda match: f"{{{match[1]}}}", line.route).strip("/")


def _described(world: World) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """By method and route without its types: fields of the body and names of the query. Asked for once a process."""
    if not _known:
        for who, prefix in (("owner", "api/v1/"), ("node", "api/node/v1/")):
            described = json.loads(world.client(who, "api/").get(f"/{prefix}openapi.json").content)
            _known.update(_fields_of(described, prefix))
    return _known


def _fields_of(described: Any, prefix: str) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    found = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            text = json.dumps(operation.get("requestBody", {}))
            schemas = [described["components"]["schemas"][name] for name in re.findall(r"schemas/(\w+)", text)]
            fields = {name for schema in schemas for name in schema.get("properties", {})}
            query = {given["name"] for given in operation.get("parameters", []) if given["in"] == "query"}
            found[method.upper(), path.strip("/")] = (fields, query)
    return found
