"""Numbers that no column holds and Python will not even read, wherever an address takes one: never a 500.

SQLite's integers have 64 bits and PostgreSQL's fewer in places; Python refuses to read an integer of more than 4,300
digits; JSON's numbers may be infinite.
"""

import json
import re
from functools import partial
from urllib.parse import quote

import pytest

from tests.integration.access import walk
from tests.integration.access.table import lines
from tests.integration.access.world import World

LONG = "9" * 5000
NUMBERS = (LONG, "9" * 30, str(2**63), str(-(2**63) - 1), quote("٣" * 20))
# not numbers where one is asked for
WORDS = (f'"{LONG}"', f"[{LONG}]", "[[1]]")
LITERALS = (LONG, "9" * 30, str(2**63), str(2**38), str(-(2**63) - 1), "1e400", "NaN", *WORDS)
SENDS = {
    "bodies": partial(walk.in_bodies, odd=LITERALS),
    "addresses": partial(walk.in_addresses, odd=NUMBERS),
    "queries": partial(walk.in_queries, odd=NUMBERS[:2]),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("where", SENDS)
def test_a_number_that_no_row_can_have_is_refused_in_words(world: World, where: str) -> None:
    asked, wrong = walk.breaks(world, SENDS[where], shown=lambda text: re.sub("9{99,}", "9…", text))
    assert asked > 100
    assert not wrong, "\n".join(sorted(wrong))


def test_a_node_s_secret_is_not_asked_for_by_a_number_that_nobody_has(world: World) -> None:
    line = next(line for line in lines() if line.route == "api/node/v1/secret")
    for number in (LONG, "9" * 30, "٣", "²"):
        body = json.dumps({"node_id": number, "signed_at": 1, "signature": "A" * 88}).encode()
        assert walk.answered(world, line, line.route, data=body, content_type="application/json") in (403, 422)
