"""Peaks of memory, of a real process that takes addresses without touching them."""

import subprocess
import sys

import pytest

from farm.rules.wording.numbers import MIB

TAKEN = 512
PROGRAM = f"""
import mmap
from worker.runner import memory
before = memory.read_peak_bytes(), memory.read_peak_address_space_bytes()
held = mmap.mmap(-1, {TAKEN} << 20)
print(*(after - old for after, old in zip((memory.read_peak_bytes(), memory.read_peak_address_space_bytes()), before)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its peak of addresses")
def test_addresses_that_are_taken_and_not_touched_are_counted_apart_from_resident_memory() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    resident, addresses = (int(size) for size in said.stdout.split())
    assert addresses == pytest.approx(TAKEN * MIB, abs=2 * MIB)
    assert resident < 16 * MIB
