"""What a node makes of the farm's answers."""

from collections.abc import Callable

import httpx2
import pytest

from farm.contract import node as messages
from worker.agent.connection import gateway as farm

URL = "https://farm.example"
Answer = Callable[[httpx2.Request], httpx2.Response]


def gateway(answer: Answer) -> farm.Gateway:
    return farm.Gateway(URL, secret="ofn_1", client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def says(status: int, **body: object) -> Answer:
    return lambda request: httpx2.Response(status, json=body)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, farm.NodeUnknownError),
        (409, farm.LeaseLostError),
        (408, farm.UnavailableError),
        (429, farm.UnavailableError),
        (502, farm.UnavailableError),
        (422, farm.RejectedError),
        (404, farm.RejectedError),
        (302, farm.RejectedError),
    ],
)
def test_each_refusal_has_its_kind_and_the_farms_words(status: int, kind: type[farm.GatewayError]) -> None:
    with pytest.raises(kind, match=r"No such block. Ask again."):
        gateway(says(status, detail="No such block.", code="missing", hint="Ask again.")).claim("b", attempt=1)


def test_a_proxys_page_of_html_is_named_by_its_status() -> None:
    answer = lambda request: httpx2.Response(503, text="<html>away</html>")  # noqa: E731
    with pytest.raises(farm.UnavailableError, match="answered HTTP 503"):
        gateway(answer).heartbeat("b", attempt=1, token="t")


def test_an_answer_that_is_no_message_is_refused_in_one_sentence() -> None:
    with pytest.raises(farm.RejectedError, match="answered with something other than Lease"):
        gateway(says(200, surprise=1)).claim("b", attempt=1)


def test_a_cut_line_is_unavailable() -> None:
    def cut(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError("cut")

    with pytest.raises(farm.UnavailableError, match="cut"):
        gateway(cut).receive_message(wait_s=1)


def test_no_message_is_none() -> None:
    assert gateway(lambda request: httpx2.Response(204)).receive_message(wait_s=1) is None


def test_requests_carry_the_secret_of_the_day_and_the_attempts_token() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, json={"lease_s": 9.0})

    node = gateway(answer)
    node.heartbeat("b", attempt=1, token="one")
    node.use_secret("ofn_2")
    node.heartbeat("b", attempt=1, token="two")
    assert [r.headers["Authorization"] for r in seen] == ["Bearer ofn_1", "Bearer ofn_2"]
    assert [r.headers[messages.ATTEMPT_TOKEN_HEADER] for r in seen] == ["one", "two"]


def restored(known: str, asked: list[str]) -> Answer:
    """A farm that knows one secret alone; `asked`: those that came."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers["Authorization"].removeprefix("Bearer "))
        if asked[-1] != known:
            return httpx2.Response(401, json={"detail": "This secret opens nothing.", "code": "unknown"})
        return httpx2.Response(200, json={"lease_s": 9.0})

    return answer


def test_a_secret_that_a_restored_farm_does_not_know_is_renewed_and_the_request_sent_again() -> None:
    asked: list[str] = []
    node = gateway(restored("ofn_2", asked))
    node.set_renewal(lambda: node.use_secret("ofn_2"))
    assert node.heartbeat("b", attempt=1, token="t").lease_s == 9.0
    assert asked == ["ofn_1", "ofn_2"]


def test_a_farm_that_refuses_the_new_secret_too_is_not_asked_a_third_time() -> None:
    asked: list[str] = []
    node = gateway(restored("ofn_9", asked))
    node.set_renewal(lambda: node.use_secret("ofn_2"))
    with pytest.raises(farm.NodeUnknownError, match="opens nothing"):
        node.heartbeat("b", attempt=1, token="t")
    assert asked == ["ofn_1", "ofn_2"]


@pytest.mark.parametrize("refusal", [farm.RejectedError("Taken out.", status=403), farm.NodeUnknownError("Unknown.")])
def test_a_node_whose_key_is_refused_hears_the_first_refusal(refusal: farm.GatewayError) -> None:
    def renew() -> None:
        raise refusal

    node = gateway(restored("ofn_2", []))
    node.set_renewal(renew)
    with pytest.raises(farm.NodeUnknownError, match="opens nothing"):
        node.heartbeat("b", attempt=1, token="t")


def test_a_farm_that_is_away_while_a_secret_is_renewed_is_asked_again_later() -> None:
    def renew() -> None:
        raise farm.UnavailableError("The farm is away.")

    node = gateway(restored("ofn_2", []))
    node.set_renewal(renew)
    with pytest.raises(farm.UnavailableError):
        node.heartbeat("b", attempt=1, token="t")


def test_a_disk_that_keeps_no_new_secret_is_a_reason_to_try_later() -> None:
    def renew() -> None:
        raise OSError(28, "No space left on device")

    node = gateway(restored("ofn_2", []))
    node.set_renewal(renew)
    with pytest.raises(farm.UnavailableError, match="No space left"):
        node.heartbeat("b", attempt=1, token="t")


def test_a_file_that_is_not_this_nodes_is_refused_before_its_first_byte() -> None:
    with pytest.raises(farm.RejectedError, match="not of a block"):
        list(
            gateway(says(404, detail="This file is not of a block of yours.", code="missing")).stream_file(
                "a", token="t"
            )
        )


def test_a_file_comes_whole() -> None:
    assert b"".join(gateway(lambda request: httpx2.Response(200, content=b"abc")).stream_file("a", token="t")) == b"abc"


@pytest.mark.parametrize("url", ["farm.example", "ftp://farm.example", "", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        farm.check_url(url)


@pytest.mark.parametrize("url", ["http://farm.example", "http://10.0.0.7:8000"])
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="travels by https"):
        farm.check_url(url)


@pytest.mark.parametrize("url", ["https://farm.example/", "http://127.0.0.1:8001", "http://localhost:1"])
def test_https_and_this_machine_are_addresses(url: str) -> None:
    assert farm.check_url(url) == url.rstrip("/")
