"""`deploy/quickstart`'s program: from a model to a table, and nothing left running."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib import request

import psutil
import pytest

from farm.config.embedded.plan import find_free_port
from tests.conftest import PROJECT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

MODEL = PROJECT / "tests" / "models" / "relu_op13_ir7.onnx"
MATRIX = """
budget: quick
matrix:
  runtime: [onnxruntime==1.29.0, onnxruntime==1.31.1]
  provider: [cpu]
  threads: [1]
"""


def quickstart(home: Path, *words: str) -> "subprocess.Popen[str]":
    environment = os.environ | {
        "ONNXFARM_HOME": str(home),
        "PYTHONPATH": str(PROJECT),
        "ONNXFARM_HOST_LOCK": str(home.parent / "lock"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "farm.config.embedded.quickstart", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def family(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def wait_for_line(process: "subprocess.Popen[str]", word: str) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    raise AssertionError(f"{word!r} was never said")


@pytest.mark.long
def test_once_measures_prints_and_ends(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    words = [str(MODEL), "--matrix", str(tmp_path / "matrix.yaml"), "--json", str(tmp_path / "run.json")]
    process = quickstart(tmp_path / "home", *words, "--once", "--port", str(find_free_port()))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    document = json.loads((tmp_path / "run.json").read_text())
    assert {cell["status"] for cell in document["cells"]} == {"done"}
    assert "runtime" in [one["axis"] for one in document["comparisons"]]
    assert "http://127.0.0.1" in out + err
    assert document["comparisons"][0]["verdict"] in out + err


@dataclass(frozen=True)
class Ended:
    """A quickstart that a signal ended while it measured: what it said before its pages were up, what it was."""

    home: Path
    before_pages: list[str]
    link_status: int
    processes: list[psutil.Process]
    status: int


def ended_by(number: signal.Signals, home: Path) -> Ended:
    process = quickstart(home, str(MODEL), "--port", str(find_free_port()))
    assert process.stderr is not None
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line)
            if "The pages are up at" in line:
                break
        with request.urlopen(said[-1].rpartition("Sign in, once, with ")[2].strip(), timeout=60) as answer:
            link_status = answer.status
        wait_for_line(process, "Run ")
        time.sleep(3.0)
        processes = family(process)
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        raise
    process.send_signal(number)
    process.communicate(timeout=120)
    return Ended(home, said, link_status, processes, process.returncode)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """One that Ctrl-C ended, for all tests that such a one serves."""
    return ended_by(signal.SIGINT, tmp_path_factory.mktemp("quickstart") / "home")


def test_the_pages_and_the_link_to_them_come_before_anything_is_measured(interrupted: Ended) -> None:
    assert interrupted.link_status == 200
    said = interrupted.before_pages
    assert not any(word in line for line in said for word in ("Run ", "cells", "installing onnxruntime"))


def assert_no_process_is_left(ended: Ended, *, status: int) -> None:
    assert len(ended.processes) >= 8
    assert ended.status == status
    deadline = time.monotonic() + 48
    while alive(ended.processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(ended.processes) == []


def test_ended_by_ctrl_c_it_leaves_no_process(interrupted: Ended) -> None:
    assert_no_process_is_left(interrupted, status=0)


@pytest.mark.long
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_however_it_ends_no_process_is_left(tmp_path: Path, number: signal.Signals, status: int) -> None:
    assert_no_process_is_left(ended_by(number, tmp_path / "home"), status=status)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        process = quickstart(tmp_path / "home", "--once", "--port", port)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 3
    assert err == f"onnxfarm: Port {port} is taken by another program; choose another with --port N.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["none.onnx"], "none.onnx is not a file."), (["--port", "0"], "--port takes 1 to 65535, not 0.")],
)
def test_bad_words_are_a_usage_error(tmp_path: Path, words: list[str], sentence: str) -> None:
    process = quickstart(tmp_path / "home", *words)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert sentence in err


@pytest.mark.long
def test_a_file_that_is_no_model_ends_the_command_with_its_sentence(interrupted: Ended, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    # in a home that is there already, as whoever has started it before
    process = quickstart(interrupted.home, str(tmp_path / "bad.onnx"), "--once", "--port", str(find_free_port()))
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "bad.onnx was rejected" in err
