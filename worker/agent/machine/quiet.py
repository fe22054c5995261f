"""Is the machine quiet enough to measure, and what its owner could do about it: advice in sentences. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

LOAD_PER_CORE = 0.3
BUSY_SHARE = 0.1
HOT_C = 85.0
LITTLE_MEMORY = 0.1


@dataclass(frozen=True)
class Surroundings:
    """What goes on beside the measurement. Shares are 0–1, of the whole machine."""

    load_1m: float | None = None
    logical_cores: int | None = None
    busy_share: float | None = None
    other_runners: int | None = None
    governor: str | None = None
    turbo: bool | None = None
    temperature_c: float | None = None
    free_memory_share: float | None = None
    is_emulated: bool = False
    is_on_battery: bool = False
    virtualization: str | None = None
    counters_closed_at: int | None = None


def advice(seen: Surroundings) -> tuple[str, ...]:
    """One sentence for each thing that makes numbers worse, most serious first; empty on a quiet machine."""
    return (*_about_company(seen), *_about_the_clock(seen), *_about_the_machine(seen))


def _about_company(seen: Surroundings) -> Iterator[str]:
    cores = seen.logical_cores or 1
    if seen.is_emulated:
        yield (
            "The agent runs under emulation: its numbers do not describe this processor; "
            "install an agent that is built for it."
        )
    if seen.busy_share is not None and seen.busy_share > BUSY_SHARE:
        yield (
            f"Other programs used {_percent(seen.busy_share)} of the processor just before the block: "
            "expect disturbed samples; stop them, or dedicate the machine to the farm."
        )
    if seen.other_runners:
        yield (
            f"{_runners(seen.other_runners)} on this machine just before the block: expect disturbed samples; make its "
            "agents share one lock file (ONNXFARM_HOST_LOCK), so that they take turns."
        )
    if seen.load_1m is not None and seen.load_1m > LOAD_PER_CORE * cores:
        yield (
            f"The load was {seen.load_1m:.1f} over the last minute on {cores} cores: expect wider intervals; "
            "wait for other work to finish."
        )


def _about_the_clock(seen: Surroundings) -> Iterator[str]:
    if seen.governor is not None and "powersave" in seen.governor:
        yield (
            f"The governor is {seen.governor}: expect slower and noisier results; "
            "set it to performance (cpupower frequency-set -g performance)."
        )
    elif seen.governor is not None and seen.governor != "performance":
        yield (
            f"The governor is {seen.governor}: expect the clock to follow the load and first samples to differ; "
            "set it to performance (cpupower frequency-set -g performance)."
        )
    if seen.turbo:
        yield (
            "Turbo is on: expect the clock to depend on heat and on how many cores work; "
            "switch it off for steadier, but slower, results."
        )
    if seen.temperature_c is not None and seen.temperature_c > HOT_C:
        yield f"The processor is at {seen.temperature_c:.0f} °C: expect throttling; let it cool or improve its cooling."
    if seen.is_on_battery:
        yield "The machine runs on battery: expect lowered clocks; plug it in."


def _about_the_machine(seen: Surroundings) -> Iterator[str]:
    if seen.free_memory_share is not None and seen.free_memory_share < LITTLE_MEMORY:
        yield f"Only {_percent(seen.free_memory_share)} of the memory is free: expect large models to run out of it."
    if seen.virtualization is not None:
        yield (
            f"This is a virtual machine ({seen.virtualization}): other guests on its host may disturb it; "
            "the noise floor of its A/A pairs shows how much."
        )
    if seen.counters_closed_at is not None:
        yield (
            f"kernel.perf_event_paranoid is {seen.counters_closed_at}: instructions are not counted; "
            "set it to 2 or lower (sysctl kernel.perf_event_paranoid=2)."
        )


def _runners(count: int) -> str:
    return "Another runner measured" if count == 1 else f"{count} other runners measured"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
