"""`onnxfarm serve`: a farm that answers, measures nothing, and ends with its command."""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib import request

import pytest
from cryptography import x509
from rich.console import Console

from farm.config.embedded.plan import find_free_port
from farm.config.environment import Environment
from farm.sandbox import confinement
from onnxfarm.remote.account import Account
from onnxfarm.remote.client import Client
from onnxfarm.remote.uploads import Bundle, upload_and_inspect
from tests.acceptance.containers.looks import UPLOAD
from tests.acceptance.release_index import ReleaseIndex
from tests.conftest import MODELS, PROJECT
from tests.processes import wait_for
from tests.unit.test_tls import made

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ONNXFARM_")}
ENVIRONMENT |= {"PYTHONPATH": str(PROJECT), "DJANGO_SETTINGS_MODULE": "farm.config.settings"}


@contextlib.contextmanager
def serving(folder: Path, *words: str, **environment: str) -> Iterator[str]:
    """`onnxfarm serve` without a node, until the `with` ends by Ctrl-C; what it said when it was up."""
    said = folder / "said"
    command = [sys.executable, "-m", "onnxfarm.main", "serve", "--home", str(folder / "farm"), "--no-node", *words]
    with said.open("wb") as errors:
        started = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT | environment, stderr=errors)
    try:
        wait_for(lambda: "stays up" in said.read_text(), what="the farm", seconds=120)
        yield said.read_text()
    finally:
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 0


def typed(*words: str, **environment: str) -> str:
    """What a command printed; it must not fail."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=PROJECT, env=ENVIRONMENT | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_farm_comes_up_for_its_owner_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    home, port = tmp_path / "farm", find_free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(tmp_path, "--port", str(port)) as said:
        link = re.search(r"Sign in, once, with (\S+)", said)
        with request.urlopen(link[1]) as page:
            assert "<button" in page.read().decode()
        account = {"ONNXFARM_TOKEN": (home / "token").read_text().strip(), "ONNXFARM_SERVER": url}
        assert "owner" in typed("-m", "onnxfarm.main", "farm", "users", "list", **account)
        invited = typed("-m", "onnxfarm.main", "farm", "users", "invite", "ada", "--json", **account)
        assert json.loads(invited)["sign_in_link"].startswith(f"{url}/sign-in/")
        # typed in another terminal, where nothing says the port
        assert typed("manage.py", "sign_in_link", ONNXFARM_HOME=str(home)).startswith(f"{url}/sign-in/")
    assert not (home / "node").exists()


def test_a_release_that_appears_while_a_farm_runs_is_offered_within_ten_minutes(tmp_path: Path) -> None:
    """By an interval of some seconds: what comes on top of it has to fit into ten minutes beside the usual one."""
    poll_s, late_s = 6.0, 600.0 - Environment.model_fields["index_poll_s"].default
    home, port, wheels = tmp_path / "farm", find_free_port(), tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.31.1", "1.40.0", "1.41.0rc1"):
        (wheels / f"onnxruntime-{version}-py3-none-any.whl").touch()
    nothing_else = {"PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    with ReleaseIndex(wheels, port=0, offered={"onnxruntime": ["1.31.1"]}) as index:
        farm = {"PIP_INDEX_URL": index.url, "ONNXFARM_INDEX_POLL_S": str(poll_s), **nothing_else}
        with serving(tmp_path, "--port", str(port), **farm):
            account = Account(f"http://127.0.0.1:{port}", (home / "token").read_text().strip())
            with Client(account) as client:
                stored = upload_and_inspect(client, Bundle(MODELS / "relu_op13_ir7.onnx"), console=Console(stderr=True))

                def newest() -> str:
                    time.sleep(0.5)
                    (point,) = client.plan(stored.id, {"batch": [1]}).parsed.refused
                    return point.spec.runtime.version

                wait_for(lambda: newest() == "1.31.1", what="the first look at the index", seconds=late_s)
                index.offer("onnxruntime", ["1.40.0", "1.41.0rc1"])
                began = time.monotonic()
                wait_for(lambda: newest() == "1.40.0", what="the release", seconds=poll_s + late_s)
                took_s = time.monotonic() - began
    print(f"offered {took_s:.1f} s after it appeared, with a look every {poll_s:g} s")
    assert took_s < poll_s + late_s


@pytest.mark.long
def test_a_farm_behind_a_proxy_links_to_the_proxys_address(tmp_path: Path) -> None:
    home, port, outside = tmp_path / "farm", find_free_port(), "https://farm.example"
    with serving(tmp_path, "--port", str(port), ONNXFARM_PUBLIC_URL=outside) as said:
        assert f"The farm is up at {outside} " in said
        assert f"Sign in, once, with {outside}/sign-in/" in said
        assert f"Let the proxy in front of it send everything to http://127.0.0.1:{port}, and /api/node/ to" in said
        assert typed("manage.py", "sign_in_link", ONNXFARM_HOME=str(home)).startswith(f"{outside}/sign-in/")
        token = (home / "token").read_text().strip()
        # as the proxy asks
        heads = {"Authorization": f"Bearer {token}", "X-Forwarded-Proto": "https", "Host": "farm.example"}
        asked = request.Request(
            f"http://127.0.0.1:{port}/api/v1/nodes/invitations", method="POST", headers=heads, data=b"{}"
        )
        with request.urlopen(asked) as answer:
            assert f"onnxfarm node enroll {outside} --token" in json.load(answer)["command"]


@pytest.mark.long
def test_bare_processes_have_a_sandbox_and_refuse_a_hostile_upload(tmp_path: Path) -> None:
    home, port = tmp_path / "farm", find_free_port()
    url = f"http://127.0.0.1:{port}"
    with serving(tmp_path, "--port", str(port)):
        with request.urlopen(f"{url}/metrics") as metrics:
            levels = re.findall(r"(?m)^onnxfarm_sandbox_info\{.*", metrics.read().decode())
        account = {"ONNXFARM_TOKEN": (home / "token").read_text().strip(), "ONNXFARM_SERVER": url}
        said = typed("-c", UPLOAD, "hostile", **account).strip()
    # with -s: what docs/sandbox.md says was seen
    print(*levels, said, sep="\n")
    level = confinement.find_available_level()
    assert level != "none"
    assert levels == [f'onnxfarm_sandbox_info{{level="{level}",unsandboxed="refused"}} 1.0']
    assert said.startswith("rejected a.onnx is not a valid ONNX model"), said


def test_a_port_that_is_taken_is_told_in_words(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "onnxfarm.main", "serve", "--home", str(tmp_path), "--port", port]
        done = subprocess.run(words, capture_output=True, text=True, cwd=PROJECT)
    assert (done.returncode, f"Port {port} is taken" in done.stderr) == (3, True)


def test_other_machines_reach_a_farm_with_a_certificate_by_https(tmp_path: Path) -> None:
    cert, key = made(tmp_path, [x509.DNSName("localhost")])
    port, outside = find_free_port(), find_free_port()
    words = ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-port", str(outside)]
    with serving(tmp_path, "--port", str(port), *words) as said:
        assert f"The farm is up at https://localhost:{outside} " in said
        link = re.search(r"Sign in, once, with (\S+)", said)
        nodes = re.search(r"(\d+) \(nodes\)", said)
        trusting = ssl.create_default_context(cafile=str(cert))
        with request.urlopen(link[1], context=trusting) as page:
            assert "<button" in page.read().decode()
        # the page of browsers that are nodes
        tab = f"https://localhost:{nodes[1]}/api/node/v1/tab/index.html"
        with request.urlopen(tab, context=trusting) as page:
            assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_a_certificate_without_its_key_is_refused_before_anything_starts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onnxfarm.main", "serve", "--home", str(tmp_path / "farm"), "--tls-cert", "a.pem"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 2
    assert "--tls-cert and --tls-key come together" in done.stderr
    assert not (tmp_path / "farm").exists()
