"""Numbers that no column holds and Python will not even read, wherever an address takes one: never a 500.

SQLite's integers have 64 bits and PostgreSQL's fewer in places; Python refuses to read an integer of more than 4,300
digits; JSON's numbers may be infinite.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections, transaction
from django.test import Client

from tests.integration.access.table import Line, lines
from tests.integration.access.world import OWN_NAMES, PAYLOADS, PLACE, World

LONG = "9" * 5000
NUMBERS = (LONG, "9" * 30, str(2**63), str(-(2**63) - 1), "٣" * 20)
# not numbers where one is asked for
WORDS = (f'"{LONG}"', f"[{LONG}]", "[[1]]")
LITERALS = (LONG, "9" * 30, str(2**63), str(2**38), str(-(2**63) - 1), "1e400", "NaN", *WORDS)
# what pages read of their query
ASKED = ("page", "rows", "since", "version", "like", "run", "watch", "least")


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


def named(world: World, line: Line, **odd: str) -> str:
    names = world.names | OWN_NAMES.get(line.route, {})
    return PLACE.sub(lambda match: quote(odd.get(match[1], str(names.get(match[1], "x")))), line.route)


def places(line: Line) -> list[str]:
    return [match[1] for match in PLACE.finditer(line.route)]


def bodies(world: World, line: Line, fields: set[str]) -> Iterator[str]:
    """JSON bodies, each with one odd number, as text: json would not write them."""
    made = PAYLOADS.get(f"{line.method} {line.route}")
    known = made(world) if made else {}
    if not isinstance(known, dict):
        return
    try:
        plain = json.loads(json.dumps(known))
    except TypeError:
        return
    for field in sorted(fields | set(plain)):
        for literal in LITERALS:
            text = json.dumps({**plain, field: "ODD"})
            yield text.replace('"ODD"', literal)


def fields_of(client: Client, prefix: str) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """By method and route without its types: fields of the body, and names of the query."""
    described = json.loads(client.get(f"/{prefix}openapi.json").content)
    found = {}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            text = json.dumps(operation.get("requestBody", {}))
            schemas = [described["components"]["schemas"][name] for name in re.findall(r"schemas/(\w+)", text)]
            fields = {name for schema in schemas for name in schema.get("properties", {})}
            query = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
            found[method.upper(), path.strip("/")] = (fields, query)
    return found


def plain_route(line: Line) -> str:
    return PLACE.sub(lambda match: f"{{{match[1]}}}", line.route).strip("/")


Sends = Callable[[World], Iterator[tuple[Line, str, dict[str, Any]]]]


def in_addresses(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    for line in lines():
        for place in places(line):
            for number in NUMBERS:
                yield line, named(world, line, **{place: number}), {}


def in_queries(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    known = fields_of(world.client("owner", "api/"), "api/v1/") | fields_of(
        world.client("node", "api/"), "api/node/v1/"
    )
    for line in lines():
        _, query = known.get((line.method, plain_route(line)), (set(), set()))
        names = query if line.route.startswith("api/") else set(ASKED) if line.method == "GET" else set()
        for name in sorted(names):
            for number in NUMBERS[:2]:
                yield line, f"{named(world, line)}?{name}={quote(number)}", {}


def in_bodies(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    known = fields_of(world.client("owner", "api/"), "api/v1/")
    for line in lines():
        if line.method in ("POST", "PATCH", "PUT") and line.route.startswith("api/"):
            fields, _ = known.get((line.method, plain_route(line)), (set(), set()))
            for text in bodies(world, line, fields):
                sent = {"data": text.encode(), "content_type": "application/json"}
                yield line, named(world, line), sent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sends", [in_addresses, in_queries, in_bodies], ids=["addresses", "queries", "bodies"])
def test_a_number_that_no_row_can_have_is_refused_in_words(world: World, sends: Sends) -> None:
    wrong, asked = set(), 0
    for line, address, sent in sends(world):
        asked += 1
        status = answered(world, line, address, **sent)
        if status >= 500:
            said = sent.get("data", b"").decode()[:300].replace(LONG[:200], "9…")
            wrong.add(f"{status}: {line.method} {re.sub('9{99,}', '9…', address)} {re.sub('9{99,}', '9…', said)}")
    print(f"{asked} requests")
    assert asked > 100
    assert not wrong, "\n".join(sorted(wrong))


def test_a_node_s_secret_is_not_asked_for_by_a_number_that_nobody_has(world: World) -> None:
    line = next(line for line in lines() if line.route == "api/node/v1/secret")
    for number in (LONG, "9" * 30, "٣", "²"):
        body = json.dumps({"node_id": number, "signed_at": 1, "signature": "A" * 88}).encode()
        assert answered(world, line, line.route, data=body, content_type="application/json") in (403, 422)
