"""Who comes in at the gateway: strangers use up their own patience, nodes that are known use up theirs."""

from contextlib import ExitStack
from typing import Any

import pytest

from farm.base.rate_limits import Buckets, Rate
from farm.base.refusals import TooMany
from farm.fleet.models import Node
from farm.gateway.admission import (
    KNOWN_S,
    MAX_OF_NODE,
    MAX_OF_STRANGER,
    MAX_OF_STRANGERS,
    OTHERS,
    STRANGER,
    STRANGERS,
    WAITING,
    Admission,
    UnknownNodeError,
    make_address_key,
)
from farm.gateway.endpoints import ENDPOINTS, Endpoint, find_endpoints
from farm.gateway.priority_queue import Priority
from onnxfarm.testing import Clock
from tests.coroutines import awaited

NODE = Node(pk=7, name="bench-7")
BY_NAME = {one.name: one for one in ENDPOINTS}


def scope(secret: str = "", *, client: str = "203.0.113.5") -> dict[str, Any]:
    return {"client": (client, 1), "headers": [(b"authorization", f"Bearer {secret}".encode())]}


class Farm:
    """A database that knows one secret, and counts what it was asked."""

    def __init__(self, secret: str = "ofn_right") -> None:
        self.secret, self.asked = secret, 0

    async def ask(self, question: Any, secret: str) -> Node | None:
        self.asked += 1
        return NODE if secret == self.secret else None


def enter(admission: Admission, farm: Farm, **asked: Any) -> int:
    return awaited(admission.identify(scope(**asked), farm.ask))


def test_a_node_s_hundredth_heartbeat_asks_the_database_nothing_at_the_door() -> None:
    admission, farm = Admission(), Farm()
    assert {enter(admission, farm, secret="ofn_right") for _ in range(100)} == {7}
    assert farm.asked == 1


def test_a_secret_is_looked_up_again_after_a_minute_or_when_django_refused_it() -> None:
    clock, farm = Clock(), Farm()
    admission = Admission(clock)
    enter(admission, farm, secret="ofn_right")
    clock.now += KNOWN_S + 1
    enter(admission, farm, secret="ofn_right")
    assert farm.asked == 2
    admission.forget("ofn_right")
    enter(admission, farm, secret="ofn_right")
    assert farm.asked == 3


def test_a_stranger_who_tries_secrets_is_held_up_and_nobody_else_is() -> None:
    clock, farm = Clock(), Farm()
    admission = Admission(clock)
    enter(admission, farm, secret="ofn_right")
    for number in range(int(STRANGER.max_tokens)):
        with pytest.raises(UnknownNodeError):
            enter(admission, farm, secret=f"ofn_{number}")
    asked = farm.asked
    with pytest.raises(TooMany) as held_up:
        enter(admission, farm, secret="ofn_another")
    assert held_up.value.retry_s == 1
    assert "203.0.113.5" in held_up.value.detail
    assert farm.asked == asked
    assert enter(admission, farm, secret="ofn_right") == 7
    with pytest.raises(UnknownNodeError):
        enter(admission, farm, secret="ofn_x", client="198.51.100.1")


def test_a_room_of_nodes_behind_one_address_comes_in_at_once() -> None:
    admission = Admission(Clock())
    for number in range(500):
        assert enter(admission, Farm(f"ofn_{number}"), secret=f"ofn_{number}") == 7


def test_a_stranger_with_a_million_addresses_takes_no_more_memory() -> None:
    buckets = Buckets(Rate(max_tokens=2, per_s=1), max_buckets=100)
    for number in range(1000):
        buckets.take(number)
    assert len(buckets) == 100


def test_all_strangers_together_are_held_up_too() -> None:
    admission, farm = Admission(Clock()), Farm()
    for number in range(int(STRANGERS.max_tokens)):
        with pytest.raises(UnknownNodeError):
            enter(admission, farm, secret="ofn_x", client=f"10.0.{number >> 8}.{number & 255}")
    with pytest.raises(TooMany, match="from everywhere"):
        enter(admission, farm, secret="ofn_x", client="10.1.1.1")
    assert farm.asked == STRANGERS.max_tokens


def test_one_address_that_floods_the_gateway_keeps_no_node_of_another_out() -> None:
    clock, farm = Clock(), Farm()
    admission = Admission(clock)
    for _ in range(5 * int(STRANGERS.max_tokens)):
        with pytest.raises((UnknownNodeError, TooMany)):
            enter(admission, farm, secret="ofn_x")
        clock.now += 0.01
    # a node that the gateway does not know yet: it was started anew, or the gateway was
    assert enter(admission, farm, secret="ofn_right", client="198.51.100.1") == 7


def test_a_machine_that_waits_for_approval_without_a_pause_is_held_up_as_a_stranger() -> None:
    admission = Admission(Clock())
    for _ in range(int(STRANGER.max_tokens + WAITING.max_tokens)):
        admission.charge_stranger(scope())
        admission.charge_waiting_node(scope(), 7)
    with pytest.raises(TooMany):
        admission.charge_stranger(scope())


def test_a_node_that_never_stops_is_told_when_to_come_again() -> None:
    clock = Clock()
    admission = Admission(clock)
    for _ in range(int(OTHERS.max_tokens)):
        admission.charge_request(BY_NAME["hello"], 7)
    with pytest.raises(TooMany, match="too often") as held_up:
        admission.charge_request(BY_NAME["hello"], 7)
    assert held_up.value.retry_s == 1
    admission.charge_request(BY_NAME["hello"], 8)
    clock.now += 1
    admission.charge_request(BY_NAME["hello"], 7)


def test_a_flood_of_long_reports_does_not_cost_a_node_its_own_lease() -> None:
    admission = Admission(Clock())
    for _ in range(40):
        admission.charge_bytes(BY_NAME["reports"], 7, bytes_read=1_000_000)
    with pytest.raises(TooMany) as held_up:
        admission.charge_request(BY_NAME["reports"], 7)
    assert held_up.value.retry_s > 10
    admission.charge_request(BY_NAME["heartbeat"], 7)


def test_a_node_opens_a_few_requests_at_once() -> None:
    admission, upload = Admission(), BY_NAME["traces"]
    most = MAX_OF_NODE[upload.way]
    with ExitStack() as held:
        for _ in range(most):
            held.enter_context(admission.hold_place(upload, 7))
        with pytest.raises(TooMany, match="open already"), admission.hold_place(upload, 7):
            pass
        with admission.hold_place(upload, 8):
            pass
    with admission.hold_place(upload, 7):
        pass


def test_a_node_holds_one_of_the_few_threads_for_files() -> None:
    admission = Admission()
    with admission.hold_place(BY_NAME["traces"], 7), pytest.raises(TooMany), admission.hold_place(BY_NAME["parts"], 7):
        pass


def test_a_stranger_who_sends_slowly_from_one_address_leaves_places_for_others() -> None:
    admission = Admission()
    with ExitStack() as held:
        for _ in range(MAX_OF_STRANGER):
            held.enter_context(admission.hold_stranger_place(scope()))
        for _ in range(1000):
            with pytest.raises(TooMany, match="open already"), admission.hold_stranger_place(scope()):
                pass
        with admission.hold_stranger_place(scope(client="198.51.100.1")):
            pass
    with admission.hold_stranger_place(scope()):
        pass


def test_strangers_of_many_addresses_open_a_few_requests_at_once_together() -> None:
    admission = Admission()
    with ExitStack() as held:
        for number in range(MAX_OF_STRANGERS):
            held.enter_context(admission.hold_stranger_place(scope(client=f"203.0.113.{number}")))
        with pytest.raises(TooMany), admission.hold_stranger_place(scope(client="198.51.100.1")):
            pass
        # who found no place holds none of its address
        assert all(count == 1 for count in admission._open_requests.values() if count != MAX_OF_STRANGERS)
    assert admission._open_requests == {}


def test_a_stranger_has_less_time_for_a_body_than_a_node() -> None:
    assert {one.body_s for one in ENDPOINTS if one.is_open} == {5.0}
    assert min(one.body_s for one in ENDPOINTS if not one.is_open) > 5.0


@pytest.mark.parametrize(
    ("host", "known_as"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", "an unknown address"),
        ("unix:", "unix:"),
    ],
)
def test_strangers_are_told_apart_by_address_or_site(host: str, known_as: str) -> None:
    assert make_address_key(scope(client=host)) == known_as


def test_the_gateway_knows_every_address_of_the_node_api_and_no_other() -> None:
    from farm.gateway.node_api import node_api

    views = [path for _, router in node_api._routers for path in router.path_operations.items()]
    said = {
        (method, address.strip("/").replace("{int:", "{"))
        for address, view in views
        for operation in view.operations
        for method in operation.methods
    }
    known = {
        (one.method, name)
        for method, name in said
        for one in find_endpoints("/api/node/v1/" + name)
        if one.method == method
    }
    assert known == said
    assert len(said) == len(ENDPOINTS) - 1  # the long poll is the gateway's own


def test_only_leases_go_first_and_strangers_go_last() -> None:
    order: list[Endpoint] = sorted(ENDPOINTS, key=lambda one: one.priority)
    assert {one.name for one in order if one.priority is Priority.LEASE} == {"claim", "heartbeat"}
    assert [one.name for one in order if one.is_open] == [one.name for one in order[-3:]] == ["secret", "enrol", "tab"]
    assert all(bool(one.max_bytes) == (one.method != "GET") for one in ENDPOINTS)
