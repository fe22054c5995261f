"""What a hostile child tries on its neighbours, on the files it may read, and on whoever reads its folder later."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from farm.sandbox import child, confinement, filters, launch, probe, process_calls
from farm.sandbox.policy import Level, Policy, SandboxError
from tests.unit.sandbox.conftest import Confined

ATTEMPTS = list(probe.list_attempts("", "", "", 0))
ON_X86 = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers of the system calls are those of x86-64"
)


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process of the same user, which has done nothing."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        assert process.poll() is None
        process.kill()


@cache
def probed(level: Level) -> dict[str, list[str]]:
    """What the self-test tried, and what of it worked."""
    found: dict[str, list[str]] = json.loads(confinement.run_probe(level).reply)
    return found


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_child_cannot(level: Level, attempt: str) -> None:
    assert attempt in probed(level)["tried"]
    assert attempt not in probed(level)["worked"]


@pytest.mark.parametrize("version", range(1, 7))
def test_an_older_landlock_lets_nothing_more_through(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = confinement.find_weakness("landlock")
    if reason is not None:
        pytest.skip(f"level landlock does not hold here: {reason}")
    original = launch.format_launcher_orders
    monkeypatch.setattr(launch, "format_launcher_orders", lambda *a, **more: f"{original(*a, **more)}\nabi {version}")
    assert confinement.find_weakness("landlock") is None


# a call that the filter forgets, and what a child could do with it
FORGOTTEN = {
    **{call: f"ask the network by {call}" for call in probe.NETWORK},
    "socketpair": "make a pair of sockets",
    "shmget": "share memory by System V",
    "msgget": "share a queue by System V",
    "semget": "share a lock by System V",
    "unshare": "make a name space",
}


@pytest.mark.parametrize("call", FORGOTTEN)
def test_a_level_is_not_granted_when_one_wall_is_missing(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if confinement.find_weakness("landlock") is not None:
        pytest.skip("level landlock does not hold here")
    whole = call[:3] if call in ("shmget", "msgget", "semget") else call
    without = tuple(name for name in filters._ALWAYS if not name.startswith(whole))
    monkeypatch.setattr(filters, "_ALWAYS", without)
    filters.build_seccomp_program.cache_clear()
    try:
        reason = confinement.find_weakness("landlock")
    finally:
        filters.build_seccomp_program.cache_clear()
    assert FORGOTTEN[call] in str(reason)


def test_a_child_cannot_end_a_neighbour_by_a_limit_on_its_processor_time(confined: Confined, neighbour: int) -> None:
    before = resource.prlimit(neighbour, resource.RLIMIT_CPU)
    code = f"""
import ctypes, os, resource
limit = (ctypes.c_uint64 * 2)(0, 0)
answers = [ctypes.CDLL(None).prlimit(pid, resource.RLIMIT_CPU, ctypes.byref(limit), None) for pid in ({neighbour},)]
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), repr(answers).encode())
"""
    assert confined(code).reply == b"[-1]"
    assert resource.prlimit(neighbour, resource.RLIMIT_CPU) == before


def test_a_child_may_still_limit_and_pin_itself(confined: Confined) -> None:
    code = """
import os, resource
for pid in (0, os.getpid()):
    os.sched_setaffinity(pid, os.sched_getaffinity(0))
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, 0))
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), b"ok")
"""
    ending = confined(code)
    assert ending.reply == b"ok", ending


def test_a_process_that_a_child_started_cannot_signal_a_neighbour_either(confined: Confined, neighbour: int) -> None:
    code = f"""
import os
if os.fork() == 0:
    try:
        os.kill({neighbour}, 15)
    except OSError:
        os._exit(7)
    os._exit(0)
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), str(os.waitstatus_to_exitcode(os.wait()[1])).encode())
"""
    assert confined(code, limits={"processes": True}).reply == b"7"


@ON_X86
@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("the end with its parent, under a word of 64 bits", "157, 1 << 32 | 1, 0, 0, 0, 0"),
        ("a signal's receiver, under a word of 64 bits", "72, 0, 1 << 32 | 8, os.getppid()"),
        ("the limits of process 1, under a word of 64 bits", "302, 7 << 32 | 1, 4, 0, 0"),
    ],
)
def test_a_word_that_the_kernel_cuts_to_32_bits_does_not_pass_the_filter(confined: Confined, call: str, arguments: str):
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
answer = libc.syscall(*(ctypes.c_long(word) for word in ({arguments})))
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), f"{{answer}} {{ctypes.get_errno()}}".encode())
"""
    assert confined(code).reply == b"-1 1", call


@ON_X86
def test_system_calls_by_the_numbers_of_another_architecture_end_the_child(confined: Confined) -> None:
    x32_prlimit = 0x40000000 + 302
    ending = confined(f"import ctypes, os; ctypes.CDLL(None).syscall({x32_prlimit}, os.getppid(), 4, 0, 0)")
    assert ending.signal == signal.SIGSYS


def test_a_datagram_does_not_reach_a_unix_socket_outside(confined: Confined, tmp_path: Path) -> None:
    address = str(tmp_path / "outside")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(address)
        outside.setblocking(False)
        code = f"""
import os, socket
try:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.sendto(b"from inside", {address!r})
except OSError:
    pass
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), b"tried")
"""
        assert confined(code, limits={"listed": (tmp_path,)}).reply == b"tried"
        with pytest.raises(BlockingIOError):
            outside.recv(100)


# each holds memory that is no process's resident size, until something refuses it; the figure is MiB held
HOARDS = {
    "descriptors in flight between two sockets": """
import socket
for _ in range(3000):
    here, there = socket.socketpair()
    kept.append((here, there))
    here.setblocking(False)
    try:
        while True:
            held += here.send(bytes(1 << 16))
    except BlockingIOError:
        pass
""",
    "pipes": """
import fcntl
for _ in range(3000):
    reader, writer = os.pipe()
    try:
        fcntl.fcntl(writer, 1031, 1 << 20)
    except OSError:
        pass
    os.set_blocking(writer, False)
    try:
        while True:
            held += os.write(writer, bytes(1 << 16))
    except BlockingIOError:
        pass
""",
    "a shared mapping that it lets go": """
import mmap
shared = mmap.mmap(-1, 512 << 20)
for at in range(0, len(shared), 64 << 20):
    for page in range(at, at + (64 << 20), 4096):
        shared[page] = 1
    shared.madvise(mmap.MADV_DONTNEED, at, 64 << 20)
    held += 64 << 20
""",
}


@pytest.mark.parametrize("hoard", HOARDS)
def test_a_child_holds_little_memory_that_is_not_its_own(confined: Confined, hoard: str) -> None:
    tried = "\n".join("    " + line for line in HOARDS[hoard].strip().splitlines())
    code = f"""
import os
held, kept = 0, []
try:
{tried}
except OSError:
    pass
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), str(held >> 20).encode())
"""
    ending = confined(code, limits={"memory_bytes": 256 << 20})
    assert int(ending.reply) <= 64, ending


def test_page_tables_of_a_child_count_as_its_memory(confined: Confined) -> None:
    private_anonymous = 0x4022  # and no reserve
    code = f"""
import mmap
memory = mmap.mmap(-1, 1 << 40, flags={private_anonymous})
for at in range(0, 1 << 40, 1 << 21):
    memory[at]
"""
    ending = confined(code, limits={"memory_bytes": 64 << 20})
    assert ending.kind == "out_of_memory", ending


def test_memory_of_a_process_whose_parent_has_ended_counts(confined: Confined) -> None:
    code = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.5)
        held = bytearray(256 << 20)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(30)
    os._exit(0)
os.wait()
time.sleep(30)
"""
    ending = confined(code, limits={"memory_bytes": 128 << 20, "processes": True}, timeout_s=20)
    assert ending.kind == "out_of_memory", ending


def test_without_the_instructions_for_neighbours_the_level_is_not_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = confinement.find_weakness("landlock")
    if reason is not None:
        pytest.skip(f"level landlock does not hold here: {reason}")
    monkeypatch.setattr(process_calls, "build_instructions", lambda *_: b"")
    filters.build_seccomp_program.cache_clear()
    try:
        reason = confinement.find_weakness("landlock")
    finally:
        filters.build_seccomp_program.cache_clear()
    assert reason is not None
    assert "change another process's limits" in reason


def test_a_child_whose_starter_is_gone_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    original = launch.format_launcher_orders
    monkeypatch.setattr(
        launch, "format_launcher_orders", lambda policy, level, *, starter: original(policy, level, starter=starter + 1)
    )
    with pytest.raises(SandboxError, match="its parent is gone"):
        child.run_command(["/bin/true"], policy=Policy(level="none"), timeout_s=10)


def test_process_1_of_a_container_starts_children_like_any_other(tmp_path: Path) -> None:
    program = shutil.which("bwrap")
    inside = [str(program), "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--as-pid-1", "--proc", "/proc"]
    if program is None or subprocess.run([*inside, "/bin/true"], check=False, capture_output=True).returncode:
        pytest.skip("bubblewrap makes no process name space here, so no process 1 can be had")
    code = (
        "import os; assert os.getpid() == 1\n"
        "from farm.sandbox import child; from farm.sandbox.policy import Policy\n"
        "print(child.run_command(['/bin/true'], policy=Policy(level='none'), timeout_s=100).kind)\n"
        "print(child.run_function('json:dumps', 1, policy=Policy(), timeout_s=30, preloaded=('json',)).kind)\n"
    )
    python = os.path.abspath(sys.executable)
    done = subprocess.run([*inside, python, "-c", code], capture_output=True, text=True, check=False, timeout=250)
    assert done.stdout.split() == ["done", "done"], done.stderr
