"""A farm serves its own wheel, and what *Add a node* shows installs it when it is copied."""

import os
import re
import shlex
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from farm.accounts.models import User
from farm.accounts.states import Scope
from farm.fleet.enrolment import explain_unreachable_address, make_install_command, make_wheel_link
from farm.fleet.farm_wheel import build_farm_wheel
from tests.conftest import ApiOf
from tests.integration.dashboard.pages import assert_is_page

WARNING = "Other machines cannot reach"


def test_anybody_gets_the_wheel_whole_and_is_told_when_it_is_still_the_same(client: Client, db: None) -> None:
    wheel = build_farm_wheel()
    answer = client.get(f"/install/{wheel.name}")
    assert sha256(answer.content).hexdigest() == wheel.sha256
    assert answer["Cache-Control"] == "no-cache"
    again = client.get(f"/install/{wheel.name}", headers={"if-none-match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(f"/install/{wheel.name}").status_code == 200
    assert client.post(f"/install/{wheel.name}").status_code == 405


@pytest.mark.parametrize("name", ["onnxfarm-9.9.9-py3-none-any.whl", "..%2fdb.sqlite3", "secret_key", "simple"])
def test_there_is_no_other_file(client: Client, db: None, name: str) -> None:
    assert client.get(f"/install/{name}").status_code == 404


def test_the_simple_index_links_the_wheel_with_its_digest(client: Client, db: None) -> None:
    page = client.get("/install/simple/onnxfarm/").content.decode()
    link = re.search(r'href="([^"]+)"', page)
    assert link[1] == f"../../{build_farm_wheel().name}#sha256={build_farm_wheel().sha256}"


def test_an_invitation_shows_how_to_install_join_and_start_and_warns_of_a_local_address(
    api_of: ApiOf, owner: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = settings.GATEWAY_URL = "http://127.0.0.1:8000"
    client = api_of(owner, Scope.NODES)
    made = client.post("/api/v1/nodes/invitations", {}, content_type="application/json").json()
    assert made["install"] == make_install_command()
    assert (
        f'pip install "onnxfarm[node] @ http://127.0.0.1:8000/install/{build_farm_wheel().name}#sha256='
        in made["install"]
    )
    assert made["warning"].startswith(f"{WARNING} http://127.0.0.1:8000: it is an address of this machine only.")
    assert "set ONNXFARM_PUBLIC_URL to its https:// address" in made["warning"]
    browser = Client()
    browser.force_login(owner)
    page = assert_is_page(browser.post("/fleet/invite/"))
    assert f'pip install "onnxfarm[node] @ {make_wheel_link()}"' in page
    assert WARNING in page
    settings.PUBLIC_URL = settings.GATEWAY_URL = "https://farm.example"
    assert WARNING not in assert_is_page(browser.post("/fleet/invite/"))


@pytest.mark.parametrize(
    ("public", "gateway", "named"),
    [
        ("https://farm.example", "https://farm.example", ""),
        ("https://farm.example", "http://127.0.0.1:8001", "ONNXFARM_GATEWAY_URL"),
        ("http://localhost:8000", "https://farm.example", "ONNXFARM_PUBLIC_URL"),
        ("http://[::1]:8000", "http://[::1]:8001", "ONNXFARM_PUBLIC_URL"),
        ("http://0.0.0.0:8000", "https://farm.example", "ONNXFARM_PUBLIC_URL"),
        ("http://10.1.2.3:8000", "http://bench.local:8001", ""),
    ],
)
def test_the_warning_names_what_to_set(settings: Settings, public: str, gateway: str, named: str) -> None:
    settings.PUBLIC_URL, settings.GATEWAY_URL = public, gateway
    assert bool(explain_unreachable_address()) == bool(named)
    assert named in explain_unreachable_address()


@pytest.mark.slow
def test_what_is_shown_installs_a_node_into_an_empty_environment(
    live_server: object, settings: Settings, tmp_path: Path
) -> None:
    """The requirement as it is shown, by uv, which asks an index for the rest; a wrong digest is refused."""
    settings.PUBLIC_URL = str(live_server)
    requirement = shlex.split(make_install_command())[-1]
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python, command = tmp_path / "venv/bin/python", tmp_path / "venv/bin/onnxfarm"
    forged = requirement.partition("#")[0] + "#sha256=" + "0" * 64
    refused = install(python, forged, "--no-deps")
    assert refused.returncode != 0
    assert "hash" in refused.stderr.lower()
    done = install(python, requirement)
    if done.returncode and "No solution found" not in done.stderr and "/install/" not in done.stderr:
        pytest.skip(f"No package index answers: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "ONNXFARM"))}
    helped = subprocess.run(
        [command, "node", "enroll", "--help"], env=clean, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (helped.returncode, "Join a farm" in helped.stdout) == (0, True), helped.stderr
    # the agent's own modules and what they need are there
    status = subprocess.run(
        [command, "node", "status", "--home", tmp_path / "node"], env=clean, capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert status.returncode == 2, status.stderr
    assert "onnxfarm node enroll" in status.stderr


def install(python: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=250)
