"""Bodies at the gateway: counted as they come, cut off in time, read by a thread without being kept on the way."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from farm.accounts.refusals import Invalid, TooLarge, TooSlow
from farm.api import bodies
from farm.api.bodies import HungUp, Incoming, Receive, check_length, drain, read_body
from farm.api.endpoints import Endpoint, Way
from tests.coroutines import awaited

# with the seconds of a busy machine; `HASTY` and `HASTY_FILE` are for clients that fall silent
SMALL = Endpoint("small", "POST", "small", Way.BRIEF, most_bytes=100, body_s=60.0)
FILE = Endpoint("file", "PUT", "file", Way.UPLOAD, most_bytes=1000, body_s=60.0)
HASTY = replace(SMALL, body_s=0.2)
HASTY_FILE = replace(FILE, body_s=0.3)


def pieces(*sizes: int, then: str = "") -> tuple[Receive, Callable[[], int]]:
    """A client that sends pieces of these sizes, then ends, hangs up, or falls silent; and how many were taken."""
    sent = 0

    async def receive() -> Mapping[str, Any]:
        nonlocal sent
        if sent == len(sizes):
            if then == "silence":
                await asyncio.sleep(60)
            return {"type": "http.disconnect"}
        sent += 1
        return {"type": "http.request", "body": b"x" * sizes[sent - 1], "more_body": sent < len(sizes) or bool(then)}

    return receive, lambda: sent  # type: ignore[return-value]


def headers(**given: str) -> dict[str, Any]:
    return {"headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]}


def test_a_body_that_says_it_is_too_long_is_refused_unread() -> None:
    with pytest.raises(TooLarge, match="300,000,000 bytes; at most 100"):
        check_length(headers(content_length="300000000"), SMALL)
    check_length(headers(content_length="100"), SMALL)
    for nonsense in ("-1", "1e3", "9" * 5000, "²"):
        with pytest.raises(Invalid):
            check_length(headers(content_length=nonsense), SMALL)


def test_an_endless_body_without_a_length_is_refused_as_soon_as_it_is_too_long() -> None:
    receive, taken = pieces(*[60] * 1000)
    with pytest.raises(TooLarge, match="more than 100 bytes"):
        awaited(read_body(receive, SMALL))
    assert taken() == 2


def test_a_body_that_drips_is_cut_off_in_time() -> None:
    receive, _ = pieces(10, then="silence")
    with pytest.raises(TooSlow, match="did not come within"):
        awaited(read_body(receive, HASTY))


def test_who_hangs_up_gets_no_answer() -> None:
    with pytest.raises(HungUp):
        awaited(read_body(pieces(10, then="gone")[0], SMALL))


def test_a_whole_body_is_given_as_it_was_sent() -> None:
    assert awaited(read_body(pieces(60, 40)[0], SMALL)) == b"x" * 100


def test_what_is_thrown_away_of_a_refused_body_is_bounded() -> None:
    receive, taken = pieces(*[1 << 20] * 100)
    awaited(drain(headers(), receive))
    assert taken() == 4
    receive, taken = pieces(10)
    awaited(drain(headers(expect="100-continue"), receive))
    assert taken() == 0


def in_thread(
    receive: Receive, endpoint: Endpoint = FILE, *, after_each: Callable[[bytes], None] = lambda piece: None
) -> bytes:
    """What a thread reads of the body, in pieces of 64 bytes; `after_each` is what it does with one."""

    async def read() -> bytes:
        body = Incoming(receive, endpoint)

        def all_of_it() -> bytes:
            whole = b""
            while piece := body.read(64):
                whole += piece
                after_each(piece)
            return whole

        return await asyncio.to_thread(all_of_it)

    return awaited(read())


def test_a_thread_reads_a_file_while_it_comes() -> None:
    assert in_thread(pieces(300, 0, 1, 500)[0]) == b"x" * 801


@pytest.mark.parametrize(
    ("body", "endpoint", "problem"),
    [
        (pieces(600, 600), FILE, TooLarge),
        (pieces(10, then="silence"), HASTY_FILE, TooSlow),
        (pieces(10, then="gone"), FILE, Invalid),
    ],
)
def test_a_file_that_is_too_long_or_stops_in_the_middle_ends_in_a_refusal(
    body: tuple[Receive, Any], endpoint: Endpoint, problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        in_thread(body[0], endpoint)


def test_a_file_that_drips_frees_its_thread_long_before_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "SLOW_START_S", 0.2)
    began = time.monotonic()
    with pytest.raises(TooSlow, match="16,384 bytes a second"):
        in_thread(dripping(pause_s=0.02))
    assert time.monotonic() - began < 5


def test_a_file_that_comes_fast_enough_is_taken_however_long_the_farm_itself_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "SLOW_START_S", 0.2)

    def slowly(piece: bytes) -> None:
        time.sleep(0.05)

    assert in_thread(pieces(*[64] * 10)[0], after_each=slowly) == b"x" * 640


def dripping(*, pause_s: float) -> Receive:
    """A client that sends a byte now and then, for ever."""

    async def receive() -> Mapping[str, Any]:
        await asyncio.sleep(pause_s)
        return {"type": "http.request", "body": b"x", "more_body": True}

    return receive  # type: ignore[return-value]
