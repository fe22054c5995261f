"""Where a token may be sent: to the named farm by HTTPS, or to this machine; to nobody else."""

import socket

import httpx2
import pytest

from onnxfarm.problems import Infrastructure, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import Account, check_address, find_account, store_account
from onnxfarm.remote.client import Client

HERE = ["http://127.0.0.1:8000", "http://localhost:8000/", "http://[::1]:8000", "http://127.8.8.8", "HTTP://LOCALHOST"]
# by their looks, by a name that may resolve to anything, by what stands before an @, by the network's other spellings
ELSEWHERE = [
    "http://farm.example",
    "http://192.168.1.7:8000",
    "http://10.0.0.1",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "http://evil.example\\@127.0.0.1",
    "http://0.0.0.0:8000",
    "http://[::ffff:8.8.8.8]",
    "https://user:password@farm.example",
    "https://farm.example/ x",
    "ftp://127.0.0.1",
    "//127.0.0.1",
    "farm.example",
    "https://[::1",
    "https://farm.example:eight",
    "https://farm.example:99999",
]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.delenv("ONNXFARM_SERVER", raising=False)
    monkeypatch.setenv("ONNXFARM_TOKEN", "ofk_secret")


@pytest.mark.parametrize("address", [*HERE, "https://farm.example", "https://10.0.0.1:8443/"])
def test_https_and_this_machine_are_farms(address: str) -> None:
    assert check_address(address) == address.rstrip("/")
    assert find_account(address).token == "ofk_secret"


@pytest.mark.parametrize("address", ELSEWHERE)
def test_a_token_is_not_sent_where_others_could_read_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By --server, by the environment, from the file of an older `login`, and by programs that use the client."""
    with pytest.raises(Usage):
        find_account(address)
    monkeypatch.setenv("ONNXFARM_SERVER", address)
    with pytest.raises(Usage):
        find_account()
    with pytest.raises(Usage):
        Account(address, "ofk_secret")


def test_an_address_that_an_older_login_kept_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    path = store_account(Account("http://127.0.0.1:8000", "ofk_kept"))
    path.write_text(path.read_text().replace("127.0.0.1", "farm.example"))
    monkeypatch.delenv("ONNXFARM_TOKEN")
    with pytest.raises(Usage, match="plain HTTP to another machine"):
        find_account()


@pytest.mark.parametrize("address", ["https://me:hunter2@farm.example", "ftp://me:hunter2@x", "https://a:hunter2@b@c"])
def test_a_password_in_an_address_is_not_said(address: str) -> None:
    with pytest.raises(Usage) as refused:
        check_address(address)
    assert "hunter2" not in str(refused.value)


def test_the_refusal_says_what_to_do_instead() -> None:
    with pytest.raises(Usage, match=r"https://farm\.example:8000, or a tunnel to the farm: ssh -L"):
        check_address("http://farm.example:8000")


@pytest.mark.parametrize(
    "location", ["http://farm.test/api/v1/me", "https://evil.example/api/v1/me", "//evil.example/", "/api/v1/other"]
)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_never_carries_the_token_on(status: int, location: str) -> None:
    asked: list[str] = []

    def farm(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(status, headers={"Location": location})

    with (
        Client(Account("https://farm.test", "ofk_secret"), transport=httpx2.MockTransport(farm)) as client,
        pytest.raises(Infrastructure, match="redirects to"),
    ):
        client.call(operations.ME)
    assert asked == ["https://farm.test/api/v1/me"]


def test_plain_http_to_this_machine_goes_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment would get the token in the clear."""
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        account = Account(f"http://127.0.0.1:{closed.getsockname()[1]}", "ofk_secret")
        client = Client(account, sleep=lambda seconds: None)
        with client, pytest.raises(Infrastructure, match="cannot be reached"):
            client.call(operations.ME)
        proxy.settimeout(0.2)
        with pytest.raises(TimeoutError):
            proxy.accept()
