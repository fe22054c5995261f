"""Who waits for the machine is told who has it, since when, and what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_who_waits_is_told_at_once_who_measures_since_when_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    other = held_by(tmp_path / "lock", "bench")
    told: list[str] = []
    try:
        with pytest.raises(host_lock.BusyError) as busy, host_lock.measuring(patience_s=0.3, on_wait=told.append):
            pass
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert len(told) == 1
    for said in (told[0], str(busy.value)):
        assert f"`onnxfarm bench` (process {other.pid}) has been measuring on this machine since " in said
        assert f"kill {other.pid}" in said


def test_who_has_the_machine_to_itself_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(tmp_path / "lock"))
    told: list[str] = []
    with host_lock.measuring(patience_s=0, on_wait=told.append):
        pass
    assert told == []


@pytest.mark.parametrize("text", ["", "1: FLOCK\n", "1: FLOCK ADVISORY WRITE nobody 08:01:{inode} 0 EOF\n", "\0\n"])
def test_a_kernel_that_tells_nothing_leaves_a_sentence_all_the_same(tmp_path: Path, text: str) -> None:
    lock, locks = tmp_path / "lock", tmp_path / "locks"
    lock.touch()
    locks.write_text(text.replace("{inode}", str(lock.stat().st_ino)))
    descriptor = os.open(lock, os.O_RDONLY)
    try:
        assert host_lock.sentence(descriptor, locks=locks).startswith("Another program is measuring on this machine")
    finally:
        os.close(descriptor)
