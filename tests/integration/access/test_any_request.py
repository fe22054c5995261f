"""Whatever is sent to the APIs, they answer in words: schemathesis makes requests from their own descriptions.

    ONNXFARM_FUZZ_REQUESTS=5000 python -m pytest tests/integration/access/test_any_request.py -s

makes as many as docs/results.md counts, and prints how each was answered. A member of the team asks the
API of people, a node with its block's token that of nodes. Half of the requests are valid by the description and half
break it; half of the names in addresses are those of rows that exist; one text in eight bodies is no text.
"""

import copy
import json
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
import requests
import schemathesis
from django.core.signals import request_finished
from django.db import close_old_connections, transaction
from django.test import Client
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, SerializationContext

from farm.contract.texts import describe_unstorable
from tests.integration.access.world import World

REQUESTS = int(os.environ.get("ONNXFARM_FUZZ_REQUESTS", "100"))
SEED = int(os.environ.get("ONNXFARM_FUZZ_SEED", "1"))
# the thousands take minutes
TIMEOUT_S = 120 if REQUESTS <= 300 else 1400
HOST = "http://testserver"
# as many requests as surely hold one that is let in
ENOUGH = 300
# texts that JSON can write and no database stores
NO_TEXTS = ("\ud800", "a\udfffb", "\ud83d", "a\x00b")
# who asks, the description, and the share of the requests
ASKED = (("mate", "api/v1/", 0.8), ("node", "api/node/v1/", 0.2))


@schemathesis.serializer("application/offset+octet-stream")
def piece_of_an_upload(ctx: SerializationContext, value: Any) -> bytes:
    """The body of tus's PATCH, which schemathesis does not know."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def description(client: Client, prefix: str) -> Any:
    """The API's own description, as schemathesis reads it."""
    return schemathesis.openapi.from_dict(json.loads(client.get(f"/{prefix}openapi.json").content))


def strategies(client: Client, prefix: str) -> list[Any]:
    """How to make a request to each operation: one that fits the description, and one that breaks it where it can."""
    found = [
        operation.ok().as_strategy(generation_mode=mode)
        for operation in description(client, prefix).get_all_operations()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    ]
    # an operation that takes nothing cannot be sent anything wrong
    return [strategy for strategy in found if not strategy.is_empty]


@st.composite
def requests_of(draw: st.DrawFn, made: list[Any], names: dict[str, object]) -> Case:
    """A request to any operation; what its address names may be in the world."""
    case: Case = draw(draw(st.sampled_from(made)))
    if case.path_parameters and draw(st.booleans()):
        case.path_parameters = {key: names.get(key, value) for key, value in case.path_parameters.items()}
    places = list(_texts_in(case.body)) if isinstance(case.body, dict | list) else []
    if places and draw(st.integers(0, 7)) == 0:
        case.body = _with_text(case.body, draw(st.sampled_from(places)), draw(st.sampled_from(NO_TEXTS)))
    return case


def _texts_in(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a text stands in plain values, by keys and numbers from the outside."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_in(inner, (*place, key))


def _with_text(value: Any, place: tuple[Any, ...], text: str) -> Any:
    if not place:
        return text
    changed = copy.copy(value)
    changed[place[0]] = _with_text(value[place[0]], place[1:], text)
    return changed


def holds_no_text(case: Case) -> bool:
    """Whether JSON that people send holds what no database stores: refused, whatever else is right."""
    return describe_unstorable(case.body if isinstance(case.body, dict | list) else None) is not None


def send(client: Client, case: Case) -> tuple[int, str, bytes]:
    """The request as it would go over the wire, answered by the farm, with everything undone that it changed."""
    try:
        wire = requests.Request(**_for_requests(case.as_transport_kwargs(base_url=HOST))).prepare()
    except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, UnicodeError):
        # no client could send it
        hypothesis.reject()
    parts = urlsplit(str(wire.url))
    body = wire.body.encode() if isinstance(wire.body, str) else wire.body or b""
    headers = {name: _text(value) for name, value in wire.headers.items() if name.lower() != "content-length"}
    # whoever asks is known: what a wrong secret opens is asked elsewhere
    headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    sent_as = headers.pop("Content-Type", "")
    with transaction.atomic():
        answer = client.generic(
            str(wire.method), f"{parts.path}?{parts.query}", body, content_type=sent_as, headers=headers
        )
        request_finished.disconnect(close_old_connections)
        content = b"" if answer.streaming else answer.content
        answer.close()
        request_finished.connect(close_old_connections)
        transaction.set_rollback(True)
    # what answers HEAD has the type of a body and none
    kind = "" if wire.method == "HEAD" else answer.headers.get("Content-Type", "")
    return answer.status_code, kind, content


def _for_requests(given: dict[str, Any]) -> dict[str, Any]:
    known = ("method", "url", "headers", "files", "data", "json", "params", "cookies")
    return {key: value for key, value in given.items() if key in known}


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def wrong_with(status: int, kind: str, content: bytes) -> str:
    """What an answer has that none may have; empty where it is in order."""
    if status >= 500:
        return f"{status}"
    if status >= 400 and kind.startswith("application/json"):
        body = json.loads(content)
        if not set(body) <= {"detail", "code", "hint"} or not body.get("code"):
            return f"{status} with {sorted(body)}"
        if not str(body["detail"]).endswith((".", "?")):
            return f"{status} without a sentence: {body['detail']!r}"
    return ""


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize(("who", "prefix", "share"), ASKED, ids=[who for who, _, _ in ASKED])
def test_no_request_breaks_the_api(who: str, prefix: str, share: float, world: World, client: Client) -> None:
    asking = world.client(who, prefix)
    # a view's exception is what a server would make of it: a 500
    asking.raise_request_exception = False
    made = strategies(client, prefix)
    answered: Counter[str] = Counter()
    wrong: Counter[str] = Counter()

    @hypothesis.seed(SEED)
    @hypothesis.settings(
        max_examples=round(REQUESTS * share),
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(requests_of(made, world.names))
    def answers(case: Case) -> None:
        status, kind, content = send(asking, case)
        answered[f"{status // 100}xx"] += 1
        if holds_no_text(case):
            answered["no text"] += 1
            # nodes' messages lose NUL and controls on their way in
            assert who == "node" or status >= 400, case.as_curl_command()
        if problem := wrong_with(status, kind, content):
            wrong[f"{case.method} {case.operation.path}: {problem} {content[:200]!r}"] += 1
            print(f"{case.method} {case.operation.path}: {problem}\n  {case.as_curl_command()}")

    answers()
    print(json.dumps({"who": who, "requests": answered.total(), "ways": len(made), "seed": SEED, **answered}))
    assert not wrong, dict(wrong)
    assert answered["4xx"]
    # of what a node sends at random one in thirty is let in: the story of thousands reaches it, the suite's few may not
    assert answered["2xx"] or (who == "node" and answered.total() < ENOUGH)
