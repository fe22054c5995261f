"""Where a farm is: links name its own host and port, whatever it was started with and wherever the link is made."""

import re
from pathlib import Path

import pytest

from farm.config import environment
from farm.config.embedded.plan import NotPossibleError, Plan, find_free_port, make_plan
from farm.config.environment import Environment
from tests.conftest import PROJECT

NAMES = ("ONNXFARM_PUBLIC_URL", "ONNXFARM_GATEWAY_URL", "ONNXFARM_WEB_PORT", "ONNXFARM_BEHIND_PROXY")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_a_command_beside_a_farm_links_to_the_port_that_it_was_started_with(tmp_path: Path) -> None:
    environment.save_addresses(tmp_path, public_url="http://127.0.0.1:8100", gateway_url="http://127.0.0.1:8101")
    known = Environment(home=tmp_path)
    assert (known.public_url, known.gateway_url) == ("http://127.0.0.1:8100", "http://127.0.0.1:8101")
    assert known.is_local


def test_an_address_that_is_set_goes_before_the_one_that_was_kept(tmp_path: Path) -> None:
    environment.save_addresses(tmp_path, public_url="http://127.0.0.1:8100", gateway_url="http://127.0.0.1:8101")
    known = Environment(home=tmp_path, public_url="https://farm.example")
    assert (known.public_url, known.gateway_url) == ("https://farm.example", "")


def test_pages_on_another_port_link_to_it(tmp_path: Path) -> None:
    assert Environment(home=tmp_path).public_url == "http://127.0.0.1:8000"
    assert Environment(home=tmp_path, web_port=9000).public_url == "http://127.0.0.1:9000"


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"public_url": 8}', '{"public_url": "javascript:x"}'])
def test_a_spoilt_file_of_addresses_is_as_none(tmp_path: Path, kept: str) -> None:
    (tmp_path / environment.ADDRESSES_FILE).write_text(kept)
    assert Environment(home=tmp_path).public_url == "http://127.0.0.1:8000"


def test_every_process_of_a_farm_is_told_its_port() -> None:
    own = Plan(Path("/farm"), 8100, 8101).environment
    assert own["ONNXFARM_PUBLIC_URL"] == "http://127.0.0.1:8100"
    assert own["ONNXFARM_GATEWAY_URL"] == "http://127.0.0.1:8101"
    assert "ONNXFARM_BEHIND_PROXY" not in own


def test_a_farm_behind_a_proxy_links_to_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_PUBLIC_URL", "https://farm.example/")
    plan = make_plan(home=tmp_path, port=find_free_port())
    own = plan.environment
    assert own["ONNXFARM_PUBLIC_URL"] == own["ONNXFARM_GATEWAY_URL"] == "https://farm.example"
    assert own["ONNXFARM_BEHIND_PROXY"] == "1"
    assert plan.url == f"http://127.0.0.1:{plan.port}"


@pytest.mark.parametrize("given", ["farm.example", "ftp://farm.example", "https://", "https://[::1"])
def test_a_public_address_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("ONNXFARM_PUBLIC_URL", given)
    with pytest.raises(NotPossibleError, match="write an address like"):
        make_plan(home=tmp_path, port=find_free_port())


def test_no_link_of_the_product_has_a_port_of_its_own() -> None:
    files = [path for room in ("farm", "dashboard", "worker", "onnxfarm") for path in (PROJECT / room).rglob("*.*")]
    texts = {path: path.read_text() for path in files if path.suffix in (".py", ".html", ".txt", ".js")}
    naming = {
        str(path.relative_to(PROJECT))
        for path, text in texts.items()
        if re.search(r"(127\.0\.0\.1|localhost):\d", text)
    }
    # an example of an address in a refusal, and the words of the file itself
    assert naming == {"onnxfarm/remote/account.py"}
