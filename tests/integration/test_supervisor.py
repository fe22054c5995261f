"""The embedded farm's supervisor with real processes: nothing of it outlives it, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from farm.config.embedded import plan, supervisor
from farm.config.embedded.plan import Plan
from farm.config.embedded.processes import EmbeddedFarm, name_startup_steps
from farm.config.embedded.supervisor import ProcessEndedError, Supervisor
from farm.config.environment import save_addresses
from farm.config.processes import HOST
from tests.conftest import PROJECT
from tests.processes import wait_for

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
# a parent that does not care for SIGTERM, with a child in its group
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print('up', flush=True);"
    "time.sleep(600)",
]
FAILING = [sys.executable, "-c", "import sys; print('no room', file=sys.stderr); sys.exit(7)"]


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervisor]:
    one = Supervisor(tmp_path / "logs", environment=os.environ)
    yield one
    one.stop()


def wait_until_up(started: supervisor.Started) -> None:
    wait_for(lambda: "up" in started.log.read_text(), what="the process", seconds=20)


def family(process: int) -> list[psutil.Process]:
    parent = psutil.Process(process)
    return [parent, *parent.children(recursive=True)]


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_stopping_ends_every_process_and_its_children(tmp_path: Path) -> None:
    one = Supervisor(tmp_path, environment=os.environ)
    started = [one.start("calm", SLEEP), one.start("stubborn", STUBBORN)]
    for each in started:
        wait_until_up(each)
    processes = [process for each in started for process in family(each.handle.pid)]
    assert len(processes) == 3
    one.stop(grace_s=0.5)
    wait_for(lambda: alive(processes) == [], what="the end of all its processes", seconds=12)


def test_a_process_that_ends_is_named_with_its_last_words(supervised: Supervisor) -> None:
    started = supervised.start("broken", FAILING)
    started.handle.wait()
    with pytest.raises(ProcessEndedError, match="The broken process ended with status 7: no room"):
        supervised.raise_if_ended()


def test_a_process_in_front_that_fails_is_named_although_it_has_no_log(supervised: Supervisor) -> None:
    supervised.start_in_foreground(FAILING, environment={}).handle.wait()
    with pytest.raises(ProcessEndedError, match="The front process ended with status 7; what it said stands above"):
        supervised.raise_if_ended()


def test_a_process_that_is_meant_to_end_may(supervised: Supervisor) -> None:
    supervised.wait_until_done(supervised.start("short", [sys.executable, "-c", ""]), timeout_s=80)
    supervised.raise_if_ended()


def test_a_process_that_should_have_ended_is_named(supervised: Supervisor) -> None:
    with pytest.raises(ProcessEndedError, match="did not end within"):
        supervised.wait_until_done(supervised.start("long", SLEEP), timeout_s=0.1)


def test_a_processs_log_of_the_start_before_is_kept(supervised: Supervisor) -> None:
    for _ in range(2):
        wait_until_up(supervised.start("web", SLEEP))
    assert (supervised.start("web", SLEEP).log.with_name("web.log.1")).read_text() == "up\n"


def test_a_log_that_somebody_fills_is_bounded(supervised: Supervisor) -> None:
    endless = "import sys, time\nwhile True: print('x' * 4_000_000, flush=True); time.sleep(0.05)"
    started = supervised.start("talkative", [sys.executable, "-c", endless])
    sizes = []
    end = time.monotonic() + 3
    while time.monotonic() < end:
        supervised.raise_if_ended()
        sizes.append(started.log.stat().st_size)
        time.sleep(0.02)
    # begun anew, with no hole where it was before
    assert max(sizes) < 120_000_000
    assert started.log.with_name("talkative.log.1").stat().st_size > 10_000_000


def test_a_supervisor_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; from farm.config.embedded.supervisor import Supervisor\n"
        f"one = Supervisor(Path({str(tmp_path)!r}), environment=os.environ)\n"
        f"print(one.start('calm', {SLEEP!r}).handle.pid, one.start('other', {SLEEP!r}).handle.pid, flush=True)\n"
        "time.sleep(600)"
    )
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        processes = [psutil.Process(pid) for pid in pids] + psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(signal.SIGKILL)
    wait_for(lambda: alive(processes) == [], what="the end of all its processes", seconds=12)


def test_a_taken_port_is_refused_in_one_sentence(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(plan.NotPossibleError, match=f"Port {port} is taken by another program; choose another"):
            plan.make_plan(home=tmp_path, port=port)


def test_its_own_farm_on_the_port_is_not_called_another_program(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken, plan.lock_home(tmp_path):
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(plan.NotPossibleError, match=f"runs from {tmp_path} already .process {os.getpid()}.; stop"):
            plan.make_plan(home=tmp_path, port=taken.getsockname()[1])


def test_a_folder_that_cannot_be_written_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(plan.NotPossibleError, match="cannot be written"):
        plan.make_plan(home=tmp_path / "file" / "home", port=plan.find_free_port())


def test_a_full_disk_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MIN_FREE_BYTES", 1 << 60)
    with pytest.raises(plan.NotPossibleError, match="are free where"):
        plan.make_plan(home=tmp_path, port=plan.find_free_port())


def test_a_second_farm_in_one_folder_is_refused(tmp_path: Path) -> None:
    with (
        plan.lock_home(tmp_path),
        pytest.raises(plan.NotPossibleError, match=f"process {os.getpid()}"),
        plan.lock_home(tmp_path),
    ):
        pass


def test_a_farm_that_was_up_before_migrates_its_database(tmp_path: Path) -> None:
    assert name_startup_steps(tmp_path)["database"] == "making the database"
    save_addresses(tmp_path, public_url="", gateway_url="")
    assert name_startup_steps(tmp_path)["database"] == "migrating the database"


def test_a_farm_waits_for_a_slow_node_and_not_for_one_that_has_ended(tmp_path: Path) -> None:
    plan = Plan(home=tmp_path, port=1, gateway_port=2, node_home=tmp_path)
    with EmbeddedFarm(plan, ready_s=0.1) as farm:
        farm.supervisor.start("node", ["sh", "-c", f"sleep 0.5; touch {tmp_path / 'ready'}; exec sleep 60"])
        farm.wait_for_node(tmp_path)
        assert farm.seconds["node"] >= 0.5
    (tmp_path / "ready").unlink()
    with EmbeddedFarm(plan, ready_s=0.1) as farm:
        farm.supervisor.start("node", ["sh", "-c", "sleep 0.3; exit 3"])
        with pytest.raises(ProcessEndedError):
            farm.wait_for_node(tmp_path)
