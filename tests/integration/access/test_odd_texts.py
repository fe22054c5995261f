"""Texts that no database stores, wherever a person or a node sends one: never a 500.

JSON's escapes can write half of a surrogate pair, which is no character, and NUL, which PostgreSQL stores nowhere; an
address can hold bytes that are no UTF-8.
"""

from functools import partial

import pytest

from tests.integration.access import walk
from tests.integration.access.world import World

# as JSON writes them
TEXTS = (r'"\ud800"', r'"a\udfffb"', r'["\ud83d"]', r'{"\udc00": "\udc00"}', r'"a\u0000b"')
# as an address writes them
BYTES = ("%ED%A0%80", "%00", "%FF")
SENDS = {
    "bodies": partial(walk.in_bodies, odd=TEXTS),
    "forms": partial(walk.in_forms, odd=BYTES),
    "addresses": partial(walk.in_addresses, odd=BYTES),
    "queries": partial(walk.in_queries, odd=BYTES),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", SENDS)
def test_half_a_character_breaks_no_answer(world: World, where: str) -> None:
    asked, wrong = walk.breaks(world, SENDS[where])
    assert asked > 50
    assert not wrong, "\n".join(sorted(wrong))
