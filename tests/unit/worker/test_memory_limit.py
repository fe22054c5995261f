"""A cell's memory limit in the runner: what is held to what, and which sentence says so."""

import resource
import subprocess
import sys

import pytest

from farm.contract.reasons import Reason, ReasonCode
from worker.agent.measurement import runner_process
from worker.runner import faults, limits, memory

PROGRAM = """
from worker.runner import faults, limits, memory
limits.limit_memory(memory.read_address_space_bytes() // (1 << 20) + 64)
try:
    bytearray(256 << 20)
except MemoryError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to a limit on addresses")
def test_a_limited_process_gets_no_more_than_its_limit() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "refused\n"


def test_no_limit_holds_a_process_to_nothing() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    limits.limit_memory(0)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_limit_under_what_the_runtime_takes_is_refused_with_both_figures() -> None:
    # no Python with numpy takes so little
    with pytest.raises(faults.Refusal, match=r"limit of 16 MiB is under .* takes: [\d,]+ MiB of addresses") as refused:
        limits.limit_memory(16)
    assert refused.value.code == "out_of_memory"
    assert limits.add_limit_to_text(refused.value, 16) is refused.value


def test_a_system_that_tells_no_addresses_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "read_address_space_bytes", lambda: None)
    with pytest.raises(faults.Refusal, match="measure on Linux, or leave memory-limit-mb out"):
        limits.limit_memory(64)


def test_memory_that_ran_out_names_the_limit_and_other_failures_stay() -> None:
    code, text = faults.explain_error(
        RuntimeError("Failed to allocate memory for requested buffer of size 885104640"), during="run"
    )
    told = limits.add_limit_to_text(faults.Refusal(code, text, active_providers=["x"]), 1024)
    assert (told.code, told.facts) == ("out_of_memory", {"active_providers": ["x"]})
    assert told.text == (
        "under the memory limit of 1,024 MiB memory ran out asking for 885,104,640 bytes; raise memory-limit-mb, or "
        "give the cell a smaller batch"
    )
    for refusal, limit in ((faults.Refusal("not_supported", "no"), 64), (faults.Refusal(code, text), 0)):
        assert limits.add_limit_to_text(refusal, limit) is refusal


def test_a_crash_under_a_limit_says_that_there_was_one() -> None:
    crashed = Reason(code=ReasonCode.CRASHED, text="The runner died of SIGABRT.")
    told = runner_process.add_memory_limit(crashed, 256)
    assert told.text == "The runner died of SIGABRT. It ran under a memory limit of 256 MiB, which it may have reached."
    late = Reason(code=ReasonCode.TIMEOUT, text="It was stopped.")
    assert [runner_process.add_memory_limit(one, limit) for one, limit in ((None, 1), (crashed, 0), (late, 1))] == [
        None, crashed, late,
    ]  # fmt: skip
