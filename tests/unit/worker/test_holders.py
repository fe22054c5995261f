"""Who waits for the machine is told who has it and since when, and gets it by arrival."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import wait_for
from worker.agent.machine import host_lock

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(not host_lock.LOCKS.exists(), reason="this system does not list its locks")


def held_by(path: Path, *words: str) -> "subprocess.Popen[str]":
    path.touch()
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(path), *words], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    return other


def test_who_waits_is_told_at_once_who_measures_and_since_when_and_not_to_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    other = held_by(tmp_path / "lock", "bench")
    told: list[str] = []
    try:
        with pytest.raises(host_lock.BusyError) as busy, host_lock.hold_machine(patience_s=0.3, on_wait=told.append):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert len(told) == 1
    for said in (told[0], str(busy.value)):
        assert f"`onnxfarm bench` (process {other.pid}) has been measuring on this machine since " in said
        assert "kill" not in said


NODE = """
import sys
from worker.agent.machine import host_lock
host_lock.set_process_name(sys.argv[1])
with host_lock.try_to_hold_machine(patience_s=60.0, doing="testing itself"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def node_at_work(name: str) -> Iterator["subprocess.Popen[str]"]:
    command, pipe = [sys.executable, "-c", NODE, name], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            yield other
        finally:
            other.kill()


def sentence_of(lock: Path) -> str:
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        return host_lock.describe_holder(descriptor)
    finally:
        os.close(descriptor)


def test_a_node_that_has_the_machine_is_named_with_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was `An agent of a farm`, whichever of two on this machine, and always measuring."""
    lock = tmp_path / "lock"
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(lock))
    with node_at_work("bench-1") as other:
        said = sentence_of(lock)
        assert said.startswith(f"bench-1 (process {other.pid}) has been testing itself on this machine since ")
        (own,) = (tmp_path / "lock.tickets").iterdir()
        other.communicate("go on\n", timeout=30)
    assert not own.exists()


@pytest.mark.parametrize("planted", ["stale", "owner", "words", "control", "long", "binary", "pipe", "link", "folder"])
def test_what_somebody_else_left_in_the_place_of_a_holder_s_words_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    if planted == "owner" and os.geteuid():
        pytest.skip("only root gives a file to somebody else")
    lock, tickets, secret = tmp_path / "lock", tmp_path / "lock.tickets", tmp_path / "secret"
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(lock))
    tickets.mkdir()
    secret.write_text("measuring\nsecret")
    other = held_by(lock, "bench")
    place = tickets / f"{other.pid}.holder"
    texts = {
        "stale": b"measuring\nbench-9",
        "owner": b"measuring\nbench-9",
        "words": b"end process 1\nbench-9",
        "control": b"measuring\nbench-9\x1b[2J",
        "long": b"measuring\n" + b"9" * 10**6,
        "binary": b"\xff\0" * 99,
    }
    try:
        if planted == "pipe":
            os.mkfifo(place)
        elif planted == "link":
            place.symlink_to(secret)
        elif planted == "folder":
            place.mkdir()
        else:
            place.write_bytes(texts[planted])
        if planted == "stale":
            os.utime(place, (0, 0))
        if planted == "owner":
            os.chown(place, 65534, -1)
        said = sentence_of(lock)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert said.startswith(f"`onnxfarm bench` (process {other.pid}) has been measuring on this machine since ")


WAIT = """
import sys
from worker.agent.machine import host_lock
print("waiting", flush=True)
with host_lock.hold_machine(patience_s=60.0):
    print("has it", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def waiting() -> Iterator["subprocess.Popen[str]"]:
    """Another process that waits for the machine, and has it until it reads a line."""
    command, pipe = [sys.executable, "-c", WAIT], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        try:
            yield other
        finally:
            other.kill()


def number_waiting(lock: Path, count: int) -> bool:
    folder = lock.with_name(f"{lock.name}.tickets")
    return folder.is_dir() and len([path for path in folder.iterdir() if path.suffix != ".holder"]) == count


def test_a_machine_is_had_by_arrival_and_not_by_who_asks_most_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(lock))
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(contextlib.ExitStack())
        held.enter_context(host_lock.hold_machine(patience_s=0))
        first = stack.enter_context(waiting())
        wait_for(lambda: number_waiting(lock, 1), what="the first to wait", seconds=30)
        second = stack.enter_context(waiting())
        wait_for(lambda: number_waiting(lock, 2), what="the second to wait", seconds=30)
        held.close()
        # whoever had it wants it again at once, as an agent with many blocks does
        with pytest.raises(host_lock.BusyError), host_lock.hold_machine(patience_s=0):
            pass
        assert [first.stdout.readline(), first.stdout.readline()] == ["waiting\n", "has it\n"]
        first.communicate("go on\n", timeout=30)
        assert [second.stdout.readline(), second.stdout.readline()] == ["waiting\n", "has it\n"]


def test_who_died_while_it_waited_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock"
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(lock))
    with host_lock.hold_machine(patience_s=0), waiting() as other:
        wait_for(lambda: number_waiting(lock, 1), what="another to wait", seconds=30)
        other.kill()
    (ticket,) = (tmp_path / "lock.tickets").iterdir()
    with pytest.raises(host_lock.BusyError), host_lock.hold_machine(patience_s=0):
        pass
    for touched in (time.time() - host_lock.FRESH_S, time.time() + 3600.0):
        os.utime(ticket, (touched, touched))
        with host_lock.hold_machine(patience_s=0):
            pass


def test_whoever_comes_back_soon_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    early, late = host_lock.Ticket(), host_lock.Ticket()
    with host_lock.hold_machine(patience_s=0):
        for ticket in (early, late):
            with pytest.raises(host_lock.BusyError), host_lock.hold_machine(patience_s=0.15, ticket=ticket):
                pass
    with pytest.raises(host_lock.BusyError), host_lock.hold_machine(patience_s=0, ticket=late):
        pass
    with host_lock.hold_machine(patience_s=0, ticket=early):
        pass
    with host_lock.hold_machine(patience_s=0, ticket=late):
        pass


@pytest.mark.parametrize("planted", ["link", "file"])
def test_what_was_planted_in_the_place_of_the_tickets_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    elsewhere, tickets = tmp_path / "elsewhere", tmp_path / "lock.tickets"
    elsewhere.mkdir()
    tickets.symlink_to(elsewhere) if planted == "link" else tickets.touch()
    with (
        host_lock.hold_machine(patience_s=0),
        pytest.raises(host_lock.BusyError),
        host_lock.hold_machine(patience_s=0.15),
    ):
        pass
    assert list(elsewhere.iterdir()) == []


def test_who_has_the_machine_to_itself_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    told: list[str] = []
    with host_lock.hold_machine(patience_s=0, on_wait=told.append):
        pass
    assert told == []


@pytest.mark.parametrize("text", ["", "1: FLOCK\n", "1: FLOCK ADVISORY WRITE nobody 08:01:{inode} 0 EOF\n", "\0\n"])
def test_a_kernel_that_tells_nothing_leaves_a_sentence_all_the_same(tmp_path: Path, text: str) -> None:
    lock, locks = tmp_path / "lock", tmp_path / "locks"
    lock.touch()
    locks.write_text(text.replace("{inode}", str(lock.stat().st_ino)))
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        assert host_lock.describe_holder(descriptor, locks=locks).startswith(
            "Another program is measuring on this machine"
        )
    finally:
        os.close(descriptor)
