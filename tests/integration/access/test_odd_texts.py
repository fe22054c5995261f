"""Texts that no database stores, wherever a person or a node sends one: never a 500.

JSON's escapes can write half of a surrogate pair, which is no character, and NUL, which PostgreSQL stores nowhere; an
address can hold bytes that are no UTF-8.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.access.table import Line, lines
from tests.integration.access.test_odd_numbers import ASKED, Sends, answered, fields_of, named, places, plain_route
from tests.integration.access.world import PAYLOADS, World

# as JSON writes them
HALVES = (r'"\ud800"', r'"a\udfffb"', r'["\ud83d"]', r'{"\udc00": "\udc00"}')
TEXTS = (*HALVES, r'"a\u0000b"')
# as an address writes them
BYTES = ("%ED%A0%80", "%00", "%FF")


def in_bodies(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    """A body that was right but for one field, and one with such a name of a field."""
    people = fields_of(world.client("owner", "api/"), "api/v1/")
    nodes = fields_of(world.client("node", "api/"), "api/node/v1/")
    for line in lines():
        if line.method not in ("POST", "PATCH", "PUT") or not line.route.startswith("api/"):
            continue
        fields, _ = (people | nodes).get((line.method, plain_route(line)), (set(), set()))
        made = PAYLOADS.get(f"{line.method} {line.route}")
        known = made(world) if made else {}
        try:
            plain = json.loads(json.dumps(known if isinstance(known, dict) else {}))
        except TypeError:
            continue
        for field in sorted(fields | set(plain)):
            for text in TEXTS:
                content = json.dumps({**plain, field: "ODD"}).replace('"ODD"', text)
                yield line, named(world, line), {"data": content.encode(), "content_type": "application/json"}


def in_forms(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    """What a page's form sends, in each of its fields."""
    kind = "application/x-www-form-urlencoded"
    for line in lines():
        if line.method != "POST" or line.route.startswith("api/"):
            continue
        made = PAYLOADS.get(f"{line.method} {line.route}")
        known = made(world) if made else {}
        for field in sorted(known) if isinstance(known, dict) else ():
            for odd in BYTES:
                sent = "&".join(f"{name}={odd if name == field else value}" for name, value in known.items())
                yield line, named(world, line), {"data": sent.encode(), "content_type": kind}


def in_addresses(world: World) -> Iterator[tuple[Line, str, dict[str, Any]]]:
    known = fields_of(world.client("owner", "api/"), "api/v1/")
    for line in lines():
        _, query = known.get((line.method, plain_route(line)), (set(), set()))
        asked = query if line.route.startswith("api/") else set(ASKED) if line.method == "GET" else set()
        for odd in BYTES:
            for place in places(line):
                yield line, named(world, line, **{place: "ODD"}).replace("ODD", odd), {}
            for name in sorted(asked):
                yield line, f"{named(world, line)}?{name}={odd}", {}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sends", [in_bodies, in_forms, in_addresses], ids=["bodies", "forms", "addresses"])
def test_half_a_character_breaks_no_answer(world: World, sends: Sends) -> None:
    wrong, asked = set(), 0
    for line, address, sent in sends(world):
        asked += 1
        status = answered(world, line, address, **sent)
        if status >= 500:
            wrong.add(f"{status}: {line.method} {address} {sent.get('data', b'').decode()[:200]}")
    print(f"{asked} requests")
    assert asked > 50
    assert not wrong, "\n".join(sorted(wrong))
