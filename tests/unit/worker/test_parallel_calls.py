"""Sessions side by side begin together, and one that fails ends the others."""

import threading

import pytest

from worker.runner import parallel_calls


def test_every_session_begins_when_all_are_there() -> None:
    there: list[threading.Thread] = []
    begun: list[int] = []

    def call() -> None:
        there.append(threading.current_thread())

    def work(given: parallel_calls.Call, gate: parallel_calls.Gate) -> int:
        given()
        gate.wait()
        begun.append(len(there))
        return len(there)

    assert parallel_calls.run_in_parallel([call] * 3, work) == [3, 3, 3]
    assert begun == [3, 3, 3]
    assert len(set(there)) == 3


def test_sessions_do_not_wait_for_one_that_failed_and_its_error_is_the_one_that_is_told() -> None:
    def fails() -> None:
        raise MemoryError("no room")

    def work(call: parallel_calls.Call, gate: parallel_calls.Gate) -> None:
        call()
        gate.wait(timeout=30)

    with pytest.raises(MemoryError, match="no room"):
        parallel_calls.run_in_parallel([lambda: None, fails, lambda: None], work)
