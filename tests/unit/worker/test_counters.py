"""Instructions of an inference: the counter that the runner was handed, and what it makes of it."""

import os
import struct
from pathlib import Path

import pytest

from tests.unit.worker.test_windows import MS, Machine, steady
from worker.runner import counters, windows
from worker.runner.order import BudgetOrder

BUDGET = BudgetOrder(window_s=0.1, window_runs=3)


class Counting(counters.Counter):
    """So many instructions for every millisecond of the machine."""

    def __init__(self, machine: Machine, *, per_ms: int | None) -> None:
        self._machine, self._per_ms = machine, per_ms

    def read(self) -> int | None:
        return None if self._per_ms is None else self._machine.now // MS * self._per_ms


def counter_of(path: Path, *, value: int, enabled: int = 9, running: int = 9) -> counters.Counter:
    path.write_bytes(struct.pack("=QQQ", value, enabled, running))
    return counters.Counter(os.open(path, os.O_RDONLY))


def test_a_counter_is_read_as_the_kernel_writes_it(tmp_path: Path) -> None:
    assert counter_of(tmp_path / "counter", value=123_456).read() == 123_456


def test_a_counter_that_shared_the_hardware_says_nothing(tmp_path: Path) -> None:
    assert counter_of(tmp_path / "counter", value=123_456, running=4).read() is None


def test_a_counter_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"abc")
    assert counters.Counter(os.open(tmp_path / "short", os.O_RDONLY)).read() is None
    assert counters.Counter(-1).read() is None


@pytest.mark.parametrize("told", ["", "seven", "-1"])
def test_a_process_without_a_counter_counts_nothing(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(counters.VARIABLE, told)
    assert counters.open_inherited_counter() is None


def test_the_counter_is_known_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counter").write_bytes(struct.pack("=QQQ", 5, 1, 1))
    monkeypatch.setenv(counters.VARIABLE, str(os.open(tmp_path / "counter", os.O_RDONLY)))
    assert counters.open_inherited_counter().read() == 5


@pytest.mark.parametrize(("per_ms", "instructions"), [(1_000, 4_000.0), (None, None), (0, None)])
def test_instructions_are_those_of_one_inference(per_ms: int | None, instructions: float | None) -> None:
    machine = Machine(steady(4.0))
    counter = Counting(machine, per_ms=per_ms)
    taken = windows.measure(machine.call, BUDGET, clock=machine.clock, counter=counter)
    assert taken.instructions == instructions


def test_without_a_counter_there_are_no_instructions() -> None:
    machine = Machine(steady(4.0))
    assert windows.measure(machine.call, BUDGET, clock=machine.clock).instructions is None
