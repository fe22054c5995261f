"""Bodies of requests: counted as they come, cut off in time, and put aside before a thread is asked."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.base.bodies import ClientGoneError, Pace, Receive, check_length, drain_body, read_body, spool_body
from farm.base.refusals import Invalid, TooLarge, TooSlow
from farm.gateway.endpoints import Endpoint, Way
from tests.coroutines import awaited

# with the seconds of a busy machine; `HASTY` is for a client that falls silent
SMALL = Endpoint("small", "POST", "small", Way.CALL, max_bytes=100, body_s=60.0)
MAX_FILE_BYTES = 1000
HASTY = replace(SMALL, body_s=0.2)
# of a file of 1,000 bytes
PATIENT = Pace(idle_s=60.0, start_s=60.0, bytes_per_s=1)


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
        check_length(headers(content_length="300000000"), max_bytes=SMALL.max_bytes)
    check_length(headers(content_length="100"), max_bytes=SMALL.max_bytes)
    for nonsense in ("-1", "1e3", "9" * 5000, "²"):
        with pytest.raises(Invalid):
            check_length(headers(content_length=nonsense), max_bytes=SMALL.max_bytes)


def test_an_endless_body_without_a_length_is_refused_as_soon_as_it_is_too_long() -> None:
    receive, taken = pieces(*[60] * 1000)
    with pytest.raises(TooLarge, match="more than 100 bytes"):
        awaited(read_body(receive, max_bytes=SMALL.max_bytes, max_s=SMALL.body_s))
    assert taken() == 2


def test_a_body_that_drips_is_cut_off_in_time() -> None:
    receive, _ = pieces(10, then="silence")
    with pytest.raises(TooSlow, match="did not come in time"):
        awaited(read_body(receive, max_bytes=HASTY.max_bytes, max_s=HASTY.body_s))


def test_who_hangs_up_gets_no_answer() -> None:
    with pytest.raises(ClientGoneError):
        awaited(read_body(pieces(10, then="gone")[0], max_bytes=SMALL.max_bytes, max_s=SMALL.body_s))


def test_a_whole_body_is_given_as_it_was_sent() -> None:
    assert awaited(read_body(pieces(60, 40)[0], max_bytes=SMALL.max_bytes, max_s=SMALL.body_s)) == b"x" * 100


def test_what_is_thrown_away_of_a_refused_body_is_bounded() -> None:
    receive, taken = pieces(*[1 << 20] * 100)
    awaited(drain_body(headers(), receive))
    assert taken() == 4
    receive, taken = pieces(10)
    awaited(drain_body(headers(expect="100-continue"), receive))
    assert taken() == 0


def put_aside(receive: Receive, *, pace: Pace = PATIENT, max_bytes: int = MAX_FILE_BYTES, **more: Any) -> bytes:
    """What is read of the body once it is whole."""

    async def read() -> bytes:
        body = await spool_body(receive, max_bytes=max_bytes, pace=pace, **more)
        with body.file:
            content = body.file.read()
        assert len(content) == body.size
        return content

    return awaited(read())


def test_a_file_is_put_aside_while_it_comes() -> None:
    assert put_aside(pieces(300, 0, 1, 500)[0]) == b"x" * 801


def test_a_long_file_is_put_aside_on_the_disk(tmp_path: Path) -> None:
    asked: list[int] = []
    sizes = [100_000] * 10
    content = put_aside(pieces(*sizes)[0], max_bytes=sum(sizes), folder=str(tmp_path), check_room=asked.append)
    assert content == b"x" * sum(sizes)
    # pieces of 256 KiB and the rest, none of which may fill the disk
    assert asked == [300_000, 600_000, 900_000, 1_000_000]


@pytest.mark.parametrize(
    ("body", "pace", "problem"),
    [
        (pieces(600, 600), PATIENT, TooLarge),
        (pieces(10, then="silence"), Pace(idle_s=0.2), TooSlow),
        (pieces(10, then="gone"), PATIENT, ClientGoneError),
    ],
)
def test_a_file_that_is_too_long_or_stops_in_the_middle_ends_in_a_refusal(
    body: tuple[Receive, Any], pace: Pace, problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        put_aside(body[0], pace=pace)


def test_a_file_that_drips_is_refused_long_before_its_time_is_up() -> None:
    began = time.monotonic()
    with pytest.raises(TooSlow):
        put_aside(dripping(pause_s=0.02), pace=Pace(start_s=0.2))
    assert time.monotonic() - began < 5


def test_a_file_that_comes_fast_enough_is_taken_however_long_the_farm_itself_takes() -> None:
    sizes = [300_000] * 5
    content = put_aside(
        pieces(*sizes)[0], max_bytes=sum(sizes), pace=Pace(start_s=0.2), check_room=lambda size: time.sleep(0.1)
    )
    assert content == b"x" * sum(sizes)


def dripping(*, pause_s: float) -> Receive:
    """A client that sends a byte now and then, for ever."""

    async def receive() -> Mapping[str, Any]:
        await asyncio.sleep(pause_s)
        return {"type": "http.request", "body": b"x", "more_body": True}

    return receive  # type: ignore[return-value]


def test_what_came_quickly_buys_no_long_pause() -> None:
    pace = Pace(start_s=10.0, idle_s=20.0, bytes_per_s=2048)
    assert pace.next_timeout_s(10.0, waited_s=1.0, size=1 << 30) == 20.0
    assert pace.next_timeout_s(20.0, waited_s=19.0, size=1) < 1.1
    assert pace.next_timeout_s(5.0, waited_s=1.0, size=2048) == 5.0


def test_what_came_before_the_line_was_cut_is_kept_where_that_is_promised() -> None:
    body, _ = pieces(10, 20, then="gone")
    assert put_aside(body, accepts_partial=True) == b"x" * 30
