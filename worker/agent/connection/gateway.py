"""The client of the farm's node API over HTTPS, with a method for each address (farm.contract.node).

GatewayError
├── UnavailableError  no answer, or one to try later (network, 408, 429, 5xx): the same request may be sent again
├── NodeUnknownError  401: the farm does not know this node any more; the agent stops
├── LeaseLostError    409: the block or attempt is not this node's, or not any more
└── RejectedError     any other 4xx: the request is wrong, and sending it again does not help
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ValidationError

from farm.contract import node as messages
from farm.contract.blocks import Lease
from farm.contract.reports import Reply, Report
from worker.agent.machine import host_lock

PREFIX = "/api/node/v1/"
CONNECT_S = 10.0
ANSWER_S = 30.0
CHUNK_BYTES = 1 << 20
# the features of orders that this agent supports
UNDERSTOOD = (
    *(messages.TRACED_ROUNDS, messages.SCENARIOS, messages.PROMPTS, messages.INT4),
    *(messages.MODELS, messages.CALLS, messages.TRIALS, messages.ACCURACIES, messages.INDEXES),
)

Answer = TypeVar("Answer", bound=BaseModel)


class GatewayError(Exception):
    """A request to the farm failed. The text is a sentence."""


class UnavailableError(GatewayError):
    """The farm did not answer, or answered to try later."""


class NodeUnknownError(GatewayError):
    """The farm does not know this node, or not any more."""


class LeaseLostError(GatewayError):
    """The block or attempt is not this node's, or not any more."""


class RejectedError(GatewayError):
    """The request is wrong. `status` is the HTTP status, and `code` the farm's code for programs.

    `gateway`: the address of the farm's gateway, if the request was sent to its pages.
    """

    def __init__(self, text: str, *, status: int, code: str = "", gateway: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.gateway = gateway


def check_url(url: str) -> str:
    """Return the farm's address without trailing slashes; nothing is sent.

    Raises ValueError for an invalid address, and for plain HTTP to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an address; write it as https://farm.example.")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise ValueError(f"{url} is plain HTTP to another machine; a node's secret travels by https:// only.")
    return url.rstrip("/")


class _RequestOptions(TypedDict, total=False):
    """Keyword arguments of a request of httpx."""

    params: dict[str, str]
    content: bytes
    headers: dict[str, str]
    timeout: float


class Gateway:
    """The node API of one farm. Its secret may be replaced while requests run in other threads.

    Every request raises UnavailableError, NodeUnknownError, LeaseLostError or RejectedError where it fails, as the
    docstring of the module says, and RejectedError for an answer that is not the expected document.
    `receive_message` is a long poll: None where no message came within `wait_s` seconds. The same `claim` may be sent
    again by the node that got the block. `hello` and `claim` also tell the farm what this agent supports (UNDERSTOOD).
    """

    def __init__(self, url: str, *, secret: str | None = None, client: httpx2.Client | None = None) -> None:
        self.url = check_url(url)
        self._secret = secret
        self._renew: Callable[[], object] | None = None
        self._lock, self._renewing = threading.Lock(), threading.Lock()
        timeout = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
        # plain HTTP is for this machine; a proxy would send the secret over the network
        is_tls = self.url.startswith("https://")
        self._client = client or httpx2.Client(timeout=timeout, trust_env=is_tls, follow_redirects=False)

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close open connections; a request in flight in another thread ends as UnavailableError."""
        self._client.close()

    def use_secret(self, secret: str) -> None:
        with self._lock:
            self._secret = secret

    def set_renewal(self, renew: Callable[[], object]) -> None:
        """Set the function that gets a new secret for this gateway when the farm refuses the secret of a request.

        The request is then sent again, once. A farm that was restored from a backup refuses secrets that are newer.
        `request_secret` and `stream_file` do not renew it.
        """
        self._renew = renew

    def enrol(self, enrolment: messages.Enrolment) -> messages.Enrolled:
        return self._post("enrol", enrolment, messages.Enrolled)

    def request_secret(self, request: messages.SecretRequest) -> messages.SecretGrant:
        # `_send` is not used, because it would try to renew the secret by this same request
        response = self._send_once("POST", "secret", **_make_json_options(request))
        return _parse_answer(_check_response(response), messages.SecretGrant)

    def hello(self, hello: messages.Hello) -> messages.Welcome:
        headers = {
            messages.HOST_HEADER: host_lock.compute_host_id(),
            messages.UNDERSTANDS_HEADER: ", ".join(UNDERSTOOD),
        }
        return self._post("hello", hello, messages.Welcome, headers=headers)

    def fetch_status(self) -> messages.Welcome:
        """Fetch the farm's answer for this node without a hello. Farms before 23 November 2026 raise RejectedError."""
        return _parse_answer(self._send("GET", "standing"), messages.Welcome)

    def receive_message(self, *, wait_s: float) -> messages.Offer | None:
        response = self._send("GET", "messages", params={"wait": f"{wait_s:g}"}, timeout=wait_s + ANSWER_S)
        return None if response.status_code == 204 else _parse_answer(response, messages.Offer)

    def claim(self, block: str, *, attempt: int) -> Lease:
        headers = {messages.UNDERSTANDS_HEADER: ", ".join(UNDERSTOOD)}
        return self._post(f"blocks/{block}/claim", messages.ClaimRequest(attempt=attempt), Lease, headers=headers)

    def heartbeat(self, block: str, *, attempt: int, token: str, doing: str = "") -> messages.HeartbeatReply:
        """Tell the farm that this attempt goes on, and what it is doing, which is cut to MAX_DOING characters."""
        request = messages.HeartbeatRequest(attempt=attempt, doing=doing[: messages.MAX_DOING])
        headers = {messages.ATTEMPT_TOKEN_HEADER: token}
        return self._post(f"blocks/{block}/heartbeat", request, messages.HeartbeatReply, headers=headers)

    def report(self, block: str, *, attempt: int, token: str, report: Report) -> Reply:
        post = messages.ReportPost(attempt=attempt, report=report)
        return self._post(f"blocks/{block}/reports", post, Reply, headers={messages.ATTEMPT_TOKEN_HEADER: token})

    def store_file(self, place: str, content: bytes, *, attempt: int, token: str, media_type: str) -> str:
        """Send a file of a block to the address `blocks/PLACE`, and return the sha256 of the stored file."""
        headers = {"Content-Type": media_type, messages.ATTEMPT_TOKEN_HEADER: token}
        params = {"attempt": str(attempt)}
        response = self._send("PUT", f"blocks/{place}", params=params, content=content, headers=headers)
        return _parse_answer(response, messages.TraceStored).sha256

    def stream_file(self, sha256: str, *, token: str) -> Iterator[bytes]:
        """Download a file of a leased block, and yield its bytes in pieces of CHUNK_BYTES.

        The request is sent when the first piece is asked for. The caller checks the sha256 of what it got. Raises
        UnavailableError while the farm is away, also between pieces, and another GatewayError where it refuses.
        """
        headers = self._make_headers() | {messages.ATTEMPT_TOKEN_HEADER: token}
        try:
            with self._client.stream("GET", self._make_address(f"files/{sha256}"), headers=headers) as response:
                if response.status_code != 200:
                    response.read()
                    _raise_refusal(response)
                yield from response.iter_bytes(CHUNK_BYTES)
        except httpx2.TransportError as problem:
            raise UnavailableError(_describe_error(problem)) from problem

    def _post(
        self, address: str, body: BaseModel, answer: type[Answer], *, headers: dict[str, str] | None = None
    ) -> Answer:
        return _parse_answer(self._send("POST", address, **_make_json_options(body, headers)), answer)

    def _send(self, method: str, address: str, **options: Unpack[_RequestOptions]) -> httpx2.Response:
        sent_headers = self._make_headers()
        response = self._send_once(method, address, **options)
        if response.status_code == 401 and self._renew_secret(sent_headers):
            response = self._send_once(method, address, **options)
        return _check_response(response)

    def _send_once(self, method: str, address: str, **options: Unpack[_RequestOptions]) -> httpx2.Response:
        options["headers"] = {**self._make_headers(), **options.get("headers", {})}
        try:
            return self._client.request(method, self._make_address(address), **options)
        except (httpx2.TransportError, RuntimeError) as problem:  # RuntimeError: the client was closed meanwhile
            raise UnavailableError(_describe_error(problem)) from problem

    def _renew_secret(self, sent_headers: dict[str, str]) -> bool:
        """Renew the secret, unless another thread has done so. Return whether the secret is another than the sent one.

        Raises UnavailableError where the new secret cannot be stored.
        """
        with self._renewing:
            if self._make_headers() != sent_headers:
                return True
            if self._renew is None:
                return False
            try:
                self._renew()
            except (NodeUnknownError, RejectedError):
                # the node was removed, or belongs to another farm: the caller gets the first answer, a 401
                return False
            except OSError as problem:
                raise UnavailableError(f"The new secret cannot be kept ({problem.strerror}).") from problem
            return True

    def _make_address(self, address: str) -> str:
        return self.url + PREFIX + address

    def _make_headers(self) -> dict[str, str]:
        with self._lock:
            return {} if self._secret is None else {"Authorization": f"Bearer {self._secret}"}


def _make_json_options(body: BaseModel, headers: dict[str, str] | None = None) -> _RequestOptions:
    return {
        "content": body.model_dump_json().encode(),
        "headers": {"Content-Type": "application/json", **(headers or {})},
    }


def _describe_error(problem: Exception) -> str:
    return str(problem) or type(problem).__name__


def _parse_answer(response: httpx2.Response, answer: type[Answer]) -> Answer:
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as problem:
        raise RejectedError(
            f"{response.request.url.path} answered with something other than {answer.__name__}: is this a farm of "
            "the same version?",
            status=response.status_code,
        ) from problem


def _check_response(response: httpx2.Response) -> httpx2.Response:
    """Return the response unless it is a refusal. Raises GatewayError."""
    if response.status_code >= 300:
        _raise_refusal(response)
    return response


def _raise_refusal(response: httpx2.Response) -> None:
    status, problem = response.status_code, _parse_problem(response)
    sentence = f"{problem.detail} {problem.hint}" if problem.hint else problem.detail
    if status == 401:
        raise NodeUnknownError(sentence)
    if status == 409:
        raise LeaseLostError(sentence)
    if status in (408, 429) or status >= 500:
        raise UnavailableError(sentence)
    raise RejectedError(
        sentence, status=status, code=problem.code, gateway=response.headers.get(messages.GATEWAY_HEADER, "")
    )


def _parse_problem(response: httpx2.Response) -> messages.Problem:
    """Parse the farm's own problem; make one where something other than a farm answered."""
    try:
        return messages.Problem.model_validate_json(response.content)
    except ValidationError:
        sentence = f"{response.request.url.path} answered HTTP {response.status_code}."
        return messages.Problem(detail=sentence, code="unknown")
