"""Every way a child can end is told apart."""

import os
import signal
import threading
from pathlib import Path

import pytest

from farm.sandbox import child
from farm.sandbox.policy import Policy, SandboxError
from farm.sandbox.watch import RunningChild
from tests.processes import wait_for
from tests.unit.sandbox.conftest import Confined

REPLY = "import os; os.write(int(os.environ['ONNXFARM_REPLY_FD']), {0}); "


def test_a_child_answers_on_its_private_pipe(confined: Confined) -> None:
    ending = confined(REPLY.format("b'hello'") + "print('chatter')")
    assert (ending.kind, ending.reply, ending.stdout_tail) == ("done", b"hello", "chatter\n")


def test_standard_input_reaches_the_child_whole(confined: Confined) -> None:
    given = os.urandom(3 << 20)
    ending = confined(REPLY.format("str(sum(__import__('sys').stdin.buffer.read())).encode()"), stdin=given)
    assert int(ending.reply) == sum(given)


def test_a_failing_child_ends_with_its_exit_code_and_last_words(confined: Confined) -> None:
    ending = confined("raise ValueError('no such tensor')")
    assert (ending.kind, ending.exit_code) == ("exited", 1)
    assert "ValueError: no such tensor" in ending.describe()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE])
def test_a_crash_names_its_signal(confined: Confined, number: signal.Signals) -> None:
    ending = confined(f"import os; os.kill(os.getpid(), {int(number)})")
    assert (ending.kind, ending.signal) == ("crashed", number)
    assert number.name in ending.describe()


def test_a_real_segmentation_fault_is_a_crash(confined: Confined) -> None:
    assert confined("import ctypes; ctypes.string_at(0)").signal == signal.SIGSEGV


def test_a_child_that_hangs_is_ended_at_its_limit(confined: Confined) -> None:
    ending = confined("import time; time.sleep(60)", timeout_s=0.5)
    assert ending.kind == "timeout"
    assert 0.5 <= ending.wall_s < 30
    assert "its limit is 0.5 s" in ending.describe()


def test_time_for_which_a_childs_clock_stands_still_does_not_count(confined: Confined) -> None:
    def wait(running: RunningChild, seconds: float) -> None:
        running.stop_clock()
        threading.Timer(seconds, running.start_clock).start()

    # nobody starts its clock again: however slow the machine is, no time counts
    ending = confined("import time; time.sleep(1.0)", timeout_s=0.5, on_started=RunningChild.stop_clock)
    assert ending.kind == "done"
    ending = confined("import time; time.sleep(60)", timeout_s=0.5, on_started=lambda it: wait(it, 1.0))
    assert ending.kind == "timeout"
    assert 1.5 <= ending.wall_s < 30


def test_a_child_deaf_to_sigterm_is_ended_all_the_same(confined: Confined) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    assert confined(code, timeout_s=0.5).wall_s < 30


def test_processor_time_has_a_limit_of_its_own(confined: Confined) -> None:
    ending = confined("while True: pass", limits={"cpu_s": 1.0})
    assert ending.kind == "timeout"
    assert "processor time" in ending.describe()


def test_a_flood_on_the_reply_pipe_is_ended_and_cut(confined: Confined) -> None:
    ending = confined(
        "import os\nwhile True: os.write(int(os.environ['ONNXFARM_REPLY_FD']), b'x' * 65536)", max_reply_bytes=1 << 20
    )
    assert (ending.kind, len(ending.reply)) == ("flooded", 1 << 20)


def test_a_flood_of_output_is_drained_and_only_its_tail_kept(confined: Confined) -> None:
    ending = confined(
        "import sys\nfor n in range(200000): print('noise', n, file=sys.stderr)\n" + REPLY.format("b'ok'")
    )
    assert (ending.kind, ending.reply) == ("done", b"ok")
    assert len(ending.stderr_tail) <= 16 * 1024
    assert ending.stderr_tail.endswith("noise 199999\n")


def test_an_endless_flood_of_output_is_ended(confined: Confined) -> None:
    ending = confined("import os\nwhile True: os.write(1, b'x' * 65536)")
    assert ending.kind == "flooded"
    assert "printed more than" in ending.describe()


def test_a_memory_bomb_is_ended_by_its_resident_size(confined: Confined) -> None:
    code = "kept = []\nwhile True: kept.append(bytearray(4 << 20))"
    ending = confined(code, limits={"memory_bytes": 200 << 20})
    assert ending.kind == "out_of_memory"
    assert "its limit is 200 MiB" in ending.describe()


def test_one_huge_allocation_is_refused_by_the_address_space(confined: Confined) -> None:
    ending = confined("bytearray(8 << 30)", limits={"address_space_bytes": 1 << 30})
    assert ending.kind == "out_of_memory"
    assert "its address space is limited to 1024 MiB" in ending.describe()


def test_the_peak_of_memory_is_seen(confined: Confined) -> None:
    ending = confined("import time; kept = bytearray(b'x') * (600 << 20); time.sleep(0.3)")
    assert ending.peak_memory_bytes is not None
    assert 600 << 20 < ending.peak_memory_bytes < 700 << 20


def test_a_child_can_be_cancelled_from_another_thread(confined: Confined) -> None:
    def cancel_soon(running: RunningChild) -> None:
        threading.Timer(0.3, running.kill).start()

    ending = confined("import time; time.sleep(60)", on_started=cancel_soon)
    assert (ending.kind, ending.describe().startswith("It was cancelled")) == ("cancelled", True)


def test_a_caller_that_is_interrupted_leaves_no_child_behind(confined: Confined) -> None:
    seen: list[RunningChild] = []

    def interrupt(running: RunningChild) -> None:
        seen.append(running)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        confined("import time; time.sleep(60)", on_started=interrupt)
    assert not Path(f"/proc/{seen[0].pid}").exists()


def test_the_end_is_seen_without_a_process_descriptor_too(confined: Confined, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert confined(REPLY.format("b'ok'")).reply == b"ok"


def test_killing_a_child_that_is_over_does_nothing(confined: Confined) -> None:
    seen: list[RunningChild] = []
    confined("pass", on_started=seen.append)
    seen[0].kill()
    assert not seen[0].is_cancelled


def test_a_file_may_not_grow_past_its_limit(confined: Confined, work: Path) -> None:
    code = f"open({str(work / 'big')!r}, 'wb').write(bytes(2 << 20))"
    ending = confined(code, limits={"file_bytes": 1 << 20})
    assert ending.kind == "exited"
    assert "File too large" in ending.stderr_tail


def test_a_missing_program_is_said() -> None:
    ending = child.run_command(["/nowhere/python"], policy=Policy(level="none"), timeout_s=5)
    assert (ending.kind, ending.exit_code) == ("exited", 127)
    assert "/nowhere/python" in ending.describe()


def test_a_program_without_its_full_path_is_refused() -> None:
    with pytest.raises(SandboxError, match="full path"):
        child.run_command(["python"], policy=Policy(level="none"), timeout_s=5)


def test_a_child_dies_with_the_process_that_started_it(work: Path) -> None:
    program = (
        "import sys; from farm.sandbox import child; from farm.sandbox.policy import Policy\n"
        "child.run_command(['/bin/sleep', '30'], policy=Policy(level='none'), timeout_s=30,"
        " on_started=lambda running: print(running.pid, flush=True))"
    )
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), what="the child's end", seconds=5)
