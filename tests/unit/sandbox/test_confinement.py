"""What a confined child tries and may not do."""

import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from farm.sandbox import child, confinement, filters, interpreters
from farm.sandbox.policy import Level, Policy, SandboxError
from tests.unit.sandbox.conftest import Confined

TRY = """
import os
def attempt():
{body}
try:
    attempt()
except OSError as error:
    word = "refused %d" % error.errno
else:
    word = "allowed"
os.write(int(os.environ["ONNXFARM_REPLY_FD"]), word.encode())
"""


def attempted(confined: Confined, body: str, **limits: object) -> str:
    indented = "\n".join("    " + line for line in body.splitlines())
    return confined(TRY.format(body=indented), limits=limits).reply.decode()


def test_the_work_folder_can_be_written_and_read(confined: Confined, work: Path) -> None:
    assert (
        attempted(confined, f"open({str(work / 'a')!r}, 'w').write('x')\nopen({str(work / 'a')!r}).read()") == "allowed"
    )
    assert (work / "a").read_text() == "x"


def test_a_secret_beside_the_work_folder_cannot_be_read(confined: Confined, tmp_path: Path) -> None:
    secret = tmp_path / "secret_key"
    secret.write_text("do not tell")
    assert attempted(confined, f"open({str(secret)!r}).read()").startswith("refused")


def test_a_link_in_the_work_folder_does_not_lead_out(confined: Confined, tmp_path: Path, work: Path) -> None:
    (tmp_path / "secret_key").write_text("do not tell")
    (work / "link").symlink_to(tmp_path / "secret_key")
    assert attempted(confined, f"open({str(work / 'link')!r}).read()").startswith("refused")


def test_nothing_outside_can_be_written(confined: Confined, tmp_path: Path) -> None:
    assert attempted(confined, f"open({str(tmp_path / 'new')!r}, 'w')").startswith("refused")
    assert attempted(confined, "open('/usr/lib/onnxfarm_test', 'w')").startswith("refused")
    assert not (tmp_path / "new").exists()


def test_read_only_paths_cannot_be_changed(confined: Confined, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"weights")
    for body in (
        f"open({str(model)!r}, 'ab')",
        f"os.unlink({str(model)!r})",
        f"os.chmod({str(model)!r}, 0o777)",
        f"os.truncate({str(model)!r}, 0)",
        f"os.utime({str(model)!r})",
        f"os.rename({str(model)!r}, 'x')",
    ):
        assert attempted(confined, body, **{"listed": (tmp_path,)}).startswith("refused"), body
    assert model.read_bytes() == b"weights"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"])
def test_no_socket_can_be_made(confined: Confined, family: str) -> None:
    assert attempted(confined, f"import socket\nsocket.socket(socket.{family}, socket.SOCK_RAW)").startswith("refused")


def test_a_listener_on_this_machine_is_out_of_reach(confined: Confined) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        body = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)"
        assert attempted(confined, body).startswith("refused")


def test_another_process_cannot_be_signalled(confined: Confined) -> None:
    with subprocess.Popen(["/bin/sleep", "30"]) as bystander:
        try:
            assert attempted(confined, f"os.kill({bystander.pid}, 15)").startswith("refused")
            assert attempted(confined, "os.kill(-1, 0)").startswith("refused")
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_the_environment_of_its_parent_cannot_be_read(confined: Confined) -> None:
    assert attempted(confined, f"open('/proc/{os.getpid()}/environ', 'rb').read()").startswith("refused")


def test_no_variable_of_ours_is_inherited(confined: Confined, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_TOKEN", "secret")
    assert attempted(confined, "if 'ONNXFARM_TOKEN' in os.environ: raise OSError(1, 'seen')") == "allowed"


def test_its_own_facts_can_be_read(confined: Confined) -> None:
    assert attempted(confined, "open('/proc/self/status').read()\nopen('/proc/cpuinfo').read()") == "allowed"


CALLS = {
    "ptrace": 101,
    "mount": 165,
    "bpf": 321,
    "keyctl": 250,
    "unshare": 272,
    "setns": 308,
    "io_uring_setup": 425,
    "pidfd_open": 434,
    "perf_event_open": 298,
    "process_vm_readv": 310,
    "userfaultfd": 323,
    "setsid": 112,
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the system calls are those of x86-64")
@pytest.mark.parametrize("call", CALLS)
def test_a_dangerous_system_call_is_refused(confined: Confined, call: str) -> None:
    body = (
        f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.syscall({CALLS[call]}, 0, 0, 0, 0, 0) < 0:\n"
        "    raise OSError(ctypes.get_errno(), 'call')"
    )
    assert attempted(confined, body) == f"refused {errno.EPERM}"


READ = "struct.unpack('=QQQ', os.read(int(os.environ['ONNXFARM_COUNTER_FD']), 24))[0]"
COUNTED = f"""import os, struct
before = {READ}
sum(range(1_000_000))
if {READ} <= before:
    raise OSError(1, "it does not count")"""


def test_a_counter_of_its_own_is_handed_in_open(confined: Confined) -> None:
    """The clock is counted by software, and so on machines that show no counter of the processor too."""
    assert attempted(confined, COUNTED, counts="task-clock") == "allowed"
    assert (
        attempted(confined, "import os\nif 'ONNXFARM_COUNTER_FD' in os.environ: raise OSError(1, 'one')") == "allowed"
    )


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the system calls are those of x86-64")
def test_who_has_a_counter_can_open_no_other(confined: Confined) -> None:
    body = "import ctypes\nif ctypes.CDLL(None).syscall(298, 0, 0, -1, -1, 0) < 0:\n    raise OSError(1, 'call')"
    assert attempted(confined, body, counts="task-clock") == "refused 1"


def test_where_a_counter_cannot_be_opened_the_child_runs_without(confined: Confined) -> None:
    body = """import os
number = os.environ.get("ONNXFARM_COUNTER_FD", "")
if number and not number.isdecimal():
    raise OSError(1, number)"""
    assert attempted(confined, body, counts="instructions") == "allowed"


def test_no_other_process_can_be_started(confined: Confined) -> None:
    assert attempted(confined, "os.fork()").startswith("refused")
    assert attempted(confined, "import subprocess\nsubprocess.run(['/bin/true'])").startswith("refused")


def test_threads_can_be_started(confined: Confined) -> None:
    assert attempted(confined, "import threading\nt = threading.Thread(target=int)\nt.start()\nt.join()") == "allowed"


def test_a_limit_cannot_be_raised_again_not_even_by_root(confined: Confined) -> None:
    body = """import resource
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))
except ValueError as error:
    raise OSError(1, "not allowed") from error"""
    assert attempted(confined, body) == "refused 1"


def test_a_fork_bomb_is_bounded_and_gone_afterwards(confined: Confined) -> None:
    marker = f"onnxfarm-bomb-{os.getpid()}"
    code = f"import os, time\nmarker = '{marker}'\nfor _ in range(6):\n    os.fork()\ntime.sleep(60)"
    assert confined(code, timeout_s=1.0, limits={"processes": True}).kind == "timeout"
    assert not alive(marker)


def test_a_daemonised_grandchild_is_killed_too(confined: Confined) -> None:
    marker = f"onnxfarm-daemon-{os.getpid()}"
    code = (
        f"import os, signal, sys, time\nmarker = '{marker}'\nif os.fork() == 0:\n    try:\n        os.setsid()\n"
        "    except OSError:\n        pass\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork():\n        os._exit(0)\n    time.sleep(60)\nos.wait()\nos._exit(0)"
    )
    ending = confined(code, limits={"processes": True})
    assert ending.kind == "done"
    assert ending.wall_s < 30
    assert not alive(marker)


def alive(marker: str) -> list[int]:
    """Processes whose command line holds the marker, given a moment to be reaped."""
    deadline = time.monotonic() + 30
    found = [0]
    while found and time.monotonic() < deadline:
        found = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/cmdline") if marker.encode() in content(p)]
        time.sleep(0.02)
    return found


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_level_that_does_not_hold_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "install bubblewrap" in (confinement.find_weakness("bubblewrap") or "")
    assert "not confined" in (confinement.find_weakness("none") or "")


def test_without_a_filter_no_confinement_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "build_seccomp_program", lambda **_: b"")
    with pytest.raises(SandboxError, match="install pyseccomp"):
        child.run_command(["/bin/true"], policy=Policy(level="landlock"), timeout_s=5)


def test_a_path_with_a_line_break_is_refused() -> None:
    with pytest.raises(SandboxError, match="line break"):
        child.run_command(["/bin/true"], policy=Policy(read_only=(Path("/a\nrw /"),), level="none"), timeout_s=5)


def test_the_level_found_here_is_one_that_holds() -> None:
    level: Level = confinement.find_available_level()
    assert level == "none" or confinement.find_weakness(level) is None


def test_an_environment_and_the_python_behind_it_are_both_readable(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix, 'bin')}\n")
    paths = interpreters.list_interpreter_paths(tmp_path / "bin" / "python")
    assert tmp_path / "bin" in paths
    assert Path(sys.base_prefix, "lib") in paths
    assert tmp_path not in paths
