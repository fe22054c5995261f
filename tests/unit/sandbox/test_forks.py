"""The fork server: the same walls and endings as a fresh interpreter, and no word of one child to the next."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.sandbox import child, confinement, forks
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Policy
from tests.processes import wait_for

IMPORTED = ("json", "ast", "tests.unit.sandbox.forked")


@pytest.fixture(autouse=True)
def _landlock() -> None:
    reason = confinement.find_weakness("landlock")
    if reason is not None:
        pytest.skip(f"forks are confined by Landlock, which does not hold here: {reason}")


@pytest.fixture(scope="module", autouse=True)
def _server_of_this_file() -> Iterator[None]:
    yield
    forks.servers.close()


def server() -> forks.ForkServer:
    return forks.servers.get_or_start(IMPORTED, env={"PYTHONPATH": str(Path(__file__).parents[3])})


def call(name: str, payload: Any = None, *, timeout_s: float = 100, **limits: Any) -> Ending:
    here = Path(__file__).parent
    # a fresh interpreter has the packages above yet to import
    above = (here.parent / "__init__.py", here.parents[1] / "__init__.py")
    policy = Policy(read_only=(here, *above), listed=(here.parents[2], here.parents[1], here.parent), **limits)
    return child.run_function(
        f"tests.unit.sandbox.forked:{name}", payload, policy=policy, timeout_s=timeout_s, preloaded=IMPORTED
    )


def test_the_answer_is_that_of_a_fork_with_the_modules_already_imported() -> None:
    found = call("facts").parse_reply()
    assert found["parent"] == server().pid
    assert found["is_leader"]
    # its four, and the entry of its own process that Landlock's rule is bound to
    assert found["descriptors"] <= 5


def test_the_child_has_the_environment_it_is_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXFARM_SECRET_KEY", "not for children")
    assert "not for children" not in str(call("facts").parse_reply()["environment"])


def test_it_can_neither_read_nor_write_outside_nor_open_a_socket_nor_start_or_signal_a_process(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("must not be read")
    tried = call("escape", [str(secret), str(tmp_path / "new"), server().pid]).parse_reply()
    assert set(tried.values()) == {"refused"}, tried  # type: ignore[attr-defined]
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
def test_root_has_given_up_what_it_may_do() -> None:
    assert int(call("facts").parse_reply()["capabilities"], 16) & ~0b10 == 0


@pytest.mark.parametrize(
    ("name", "limits", "kind"),
    [
        ("sleep", {"timeout_s": 0.3}, "timeout"),
        ("spin", {"cpu_s": 1}, "timeout"),
        ("swell", {"memory_bytes": 300 << 20}, "out_of_memory"),
        ("crash", {}, "crashed"),
        ("leave", {}, "exited"),
        ("complain", {}, "exited"),
    ],
)
def test_each_ending_is_told_as_of_any_child(name: str, limits: dict[str, Any], kind: str) -> None:
    ending = call(name, **limits)
    assert ending.kind == kind, ending
    if kind == "exited":
        assert "last words" in ending.stderr_tail


def test_what_one_child_leaves_behind_the_next_does_not_find() -> None:
    assert call("remember").parse_reply() == 1
    assert call("remember").parse_reply() == 1


def test_many_threads_at_once_each_get_their_own_answer() -> None:
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        found[number] = call("echo", number).parse_reply()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number for number in range(12)}


def test_a_server_with_nothing_to_do_ends_and_the_next_call_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.servers.close()
    monkeypatch.setattr(forks.ForkServer.__init__, "__kwdefaults__", {"idle_s": 1.0})
    first = server()
    # not while a child works; on a machine that is busier than that it is one of a fresh interpreter
    assert call("late_parent", 2.5).parse_reply() in {first.pid, os.getpid()}
    wait_for(lambda: first.has_ended, what="the end of the idle server", seconds=30)
    assert call("echo", 7).parse_reply() == 7
    forks.servers.close()


def test_a_server_that_was_killed_costs_nothing_but_time() -> None:
    before = server().pid
    call("echo", 1)
    os.kill(server().pid, signal.SIGKILL)
    # this one has a fresh interpreter, the next a new server
    assert call("echo", 2).parse_reply() == 2
    assert call("facts").parse_reply()["parent"] == server().pid != before


def test_a_server_that_is_killed_while_a_child_works_leaves_no_child_and_the_call_is_made_again() -> None:
    known = server()
    killer = threading.Timer(0.5, os.kill, (known.pid, signal.SIGKILL))
    killer.start()
    ending = call("slow_echo", 3)
    killer.join()
    assert ending.parse_reply() == 3
