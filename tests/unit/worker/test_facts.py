"""Facts of the machine and the advice that follows from them."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from worker.agent.machine import facts, oom_kills, processor

LSCPU = {
    "lscpu": [
        {"field": "Architecture:", "data": "x86_64"},
        {
            "field": "Vendor ID:",
            "data": "GenuineIntel",
            "children": [
                {"field": "Model name:", "data": "Some CPU @ 2.00GHz"},
                {"field": "Flags:", "data": "fpu sse4_2 avx2 avx512_vnni"},
            ],
        },
        {
            "field": "Virtualization features:",
            "data": None,
            "children": [{"field": "Hypervisor vendor:", "data": "KVM"}],
        },
        {"field": "L2 cache:", "data": "2 MiB (2 instances)"},
    ]
}


def test_lscpu_is_read_nested_or_flat() -> None:
    found = processor.parse_lscpu(json.dumps(LSCPU))
    assert found.model == "Some CPU @ 2.00GHz"
    assert found.instruction_sets == ("sse4_2", "avx2", "avx512_vnni")
    assert found.virtualization == "KVM"
    assert found.caches == ("L2 2 MiB",)


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"lscpu": 3}'])
def test_an_lscpu_that_says_nothing_leaves_everything_unknown(text: str) -> None:
    assert processor.parse_lscpu(text) == processor.Processor()


def test_governor_and_turbo_are_read_where_they_are_and_unknown_elsewhere(tmp_path: Path) -> None:
    assert processor.read_governor(tmp_path) is None
    assert processor.is_turbo_enabled(tmp_path) is None
    for core, name in (("cpu0", "performance"), ("cpu1", "powersave")):
        folder = tmp_path / core / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{name}\n")
    (tmp_path / "cpufreq").mkdir()
    (tmp_path / "cpufreq" / "boost").write_text("1\n")
    assert processor.read_governor(tmp_path) == "performance, powersave"
    assert processor.is_turbo_enabled(tmp_path) is True
    (tmp_path / "intel_pstate").mkdir()
    (tmp_path / "intel_pstate" / "no_turbo").write_text("1")
    assert processor.is_turbo_enabled(tmp_path) is False


@pytest.mark.parametrize(
    ("text", "is_root", "level"),
    [("4", False, 4), ("3", False, 3), ("2", False, None), ("-1", False, None), ("4", True, None), ("x", False, None)],
)
def test_a_kernel_that_closes_its_counters_is_noticed(tmp_path: Path, text: str, is_root: bool, level: int | None):
    setting = tmp_path / "perf_event_paranoid"
    assert processor.find_perf_event_restriction(setting, is_root=is_root) is None
    setting.write_text(f"{text}\n")
    assert processor.find_perf_event_restriction(setting, is_root=is_root) == level


def test_emulation_shows_in_the_threads_own_link(tmp_path: Path) -> None:
    (tmp_path / "thread-self").mkdir()
    (tmp_path / "thread-self" / "exe").symlink_to("/usr/bin/qemu-aarch64-static")
    assert processor.is_emulated(tmp_path)
    assert not processor.is_emulated(tmp_path / "absent")


def test_a_quiet_machine_gets_no_advice() -> None:
    assert (
        facts.list_warnings(facts.MachineState(load_1m=0.1, logical_cores=4, busy_share=0.01, governor="performance"))
        == ()
    )


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (facts.MachineState(governor="powersave"), "The governor is powersave: expect"),
        (facts.MachineState(governor="schedutil"), "schedutil"),
        (facts.MachineState(turbo=True), "Turbo is on"),
        (facts.MachineState(busy_share=0.4), "40 % of the processor"),
        (facts.MachineState(other_runners=1), "Another runner measured on this machine"),
        (facts.MachineState(other_runners=2), "2 other runners measured on this machine"),
        (facts.MachineState(load_1m=3.0, logical_cores=4), "The load was 3.0"),
        (facts.MachineState(temperature_c=95.0), "95 °C"),
        (facts.MachineState(is_on_battery=True), "battery"),
        (facts.MachineState(free_memory_share=0.05), "5 % of the memory"),
        (facts.MachineState(is_emulated=True), "emulation"),
        (facts.MachineState(virtualization="KVM"), "virtual machine (KVM)"),
        (facts.MachineState(perf_event_restriction=4), "kernel.perf_event_paranoid is 4: instructions are not counted"),
    ],
)
def test_each_disturbance_has_its_sentence(seen: facts.MachineState, words: str) -> None:
    (sentence,) = facts.list_warnings(seen)
    assert words in sentence
    assert sentence.endswith(".")


def test_facts_of_this_machine_are_complete_messages() -> None:
    found = facts.read_facts(busy_window_s=0)
    assert found.hostname
    assert found.logical_cores
    assert found.memory_bytes
    assert found.sandbox in ("landlock", "bubblewrap", "none")


def test_a_runner_of_another_agent_is_seen(tmp_path: Path) -> None:
    assert facts.count_runners() is not None
    stage = tmp_path / "runner-0123456789abcdef"
    stage.mkdir()
    (stage / "__main__.py").write_text("print(flush=True); input()")
    argv = [sys.executable, "-I", str(stage)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            assert facts.is_runner(psutil.Process(process.pid).cmdline())
            found = facts.read_facts(busy_window_s=0)
        finally:
            process.communicate(b"\n")
    # other tests of this machine may run theirs beside it
    assert found.more["load"]["other_runners"] >= 1
    assert any("measured on this machine" in sentence for sentence in found.advice)


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("python", "-I"),
        ("python", "/home/me/runner-notes"),
        ("bwrap", "--die-with-parent", "python", "-I", "/x/runner-0123456789abcdef"),
    ],
)
def test_other_programs_are_no_runners(argv: tuple[str, ...]) -> None:
    assert not facts.is_runner(argv)


def test_the_kernels_count_of_kills_is_read_or_unknown(tmp_path: Path) -> None:
    path = tmp_path / "vmstat"
    path.write_text("nr_free_pages 1\noom_kill 7\n")
    assert oom_kills.count_oom_kills(path) == 7
    assert oom_kills.count_oom_kills(tmp_path / "absent") is None
