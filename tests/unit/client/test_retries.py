"""When the client asks again, over a transport that fails as real ones do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from farm.contract.api.alerts import NamedOut
from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client

# an order that is never sent twice, whose answer is read as it is
STARTED = replace(operations.START_RUN, answers=dict[str, Any])
NAMES = replace(operations.MODELS, answers=list[NamedOut])
NAMED = {"name": "resnet", "of_a_later_farm": True}
Handler = Callable[[httpx2.Request], httpx2.Response]


def client_over(handler: Handler, waits: list[float] | None = None) -> Client:
    pauses = [] if waits is None else waits
    return Client(Account("https://farm.test", "ofk_x"), transport=httpx2.MockTransport(handler), sleep=pauses.append)


def failing(times: int, *, how: Callable[[httpx2.Request], httpx2.Response]) -> tuple[Handler, list[str]]:
    """A farm that fails so many times and then answers; and the paths it was asked for."""
    asked: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return how(request) if len(asked) <= times else httpx2.Response(200, json={"id": 1})

    return handler, asked


def refuse(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("refused")


def cut(request: httpx2.Request) -> httpx2.Response:
    raise httpx2.ReadError("cut")


def away(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(503)


@pytest.mark.parametrize("how", [refuse, cut, away])
def test_reading_is_repeated_with_growing_pauses(how: Handler) -> None:
    handler, asked = failing(3, how=how)
    waits: list[float] = []
    with client_over(handler, waits) as client:
        assert client.call(operations.RESULTS, run="1") == {"id": 1}
    assert len(asked) == 4
    assert waits == sorted(waits)


def test_a_run_is_started_again_only_when_it_surely_was_not_taken() -> None:
    handler, asked = failing(2, how=refuse)
    with client_over(handler) as client:
        assert client.call(STARTED) == {"id": 1}
    handler, asked = failing(1, how=cut)
    with client_over(handler) as client, pytest.raises(Infrastructure, match="onnxfarm status"):
        client.call(STARTED)
    assert len(asked) == 1


@pytest.mark.parametrize("how", [refuse, cut])
def test_a_farm_that_stays_away_is_said_in_one_sentence(how: Handler) -> None:
    handler, asked = failing(99, how=how)
    with client_over(handler) as client, pytest.raises(Infrastructure, match="is the farm running"):
        client.call(operations.MODELS)
    assert len(asked) == 6


def test_a_broken_farm_is_infrastructure_and_a_refusal_is_usage() -> None:
    def broken(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(500, json={"detail": "Something broke.", "code": "internal"})

    def refused(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(409, json={"detail": "Not now.", "code": "conflict", "hint": "Later."})

    with client_over(broken) as client, pytest.raises(Infrastructure, match="Something broke"):
        client.call(operations.ME)
    with client_over(refused) as client, pytest.raises(Usage, match=r"Not now\. Later\."):
        client.call(operations.CANCEL_RUN, run="1")


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json=[1]),
        httpx2.Response(302, headers={"location": "/"}),
    ],
)
def test_an_address_that_is_no_farm_is_said_so(answer: httpx2.Response) -> None:
    with client_over(lambda request: answer) as client, pytest.raises(Infrastructure):
        client.call(operations.ME)


def test_models_are_read_page_by_page() -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        after = int(request.url.params["after"])
        return httpx2.Response(200, json=[NAMED | {"id": n} for n in range(after, min(after + 100, 150))])

    with client_over(pages) as client:
        found = client.list_rows(NAMES)
    assert [row.id for row in found.parsed] == list(range(150))
    assert found.json == [NAMED | {"id": n} for n in range(150)]
