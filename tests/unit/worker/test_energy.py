"""Energy: counters read beside a pass, what they come to per inference, and the words where there are none."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from farm.contract.cells import CellSpec, Runtime
from tests.processes import wait_for
from worker.agent.machine import energy
from worker.agent.machine.energy import EnergyUnreadableError, Meter, Readings

CELL = CellSpec(artifact_sha256="a" * 64, runtime=Runtime(distribution="onnxruntime", version="1.31.1"))


def package(root: Path, number: int, microjoules: int, *, name: str = "package-0", most: int = 1_000_000) -> Path:
    """A RAPL counter as the kernel shows one."""
    folder = root / f"intel-rapl:{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    return folder / "energy_uj"


def test_packages_are_added_up_and_a_counter_that_starts_again_goes_on(tmp_path: Path) -> None:
    first, second = package(tmp_path, 0, 900_000), package(tmp_path, 1, 100, name="package-1")
    package(tmp_path, 2, 5, name="psys")
    (tmp_path / "intel-rapl:0:0").mkdir()
    meter = energy.find_meter(CELL, powercap=tmp_path)
    assert meter.name == "RAPL, 2 package(s)"
    assert meter.read_j() == 0.0
    first.write_text("950000\n")
    second.write_text("300\n")
    assert meter.read_j() == pytest.approx(0.0502)
    first.write_text("50000\n")
    assert meter.read_j() == pytest.approx(0.1502)


def test_a_machine_without_a_counter_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        EnergyUnreadableError, match=r"^not readable here: .* shows no RAPL package, as on most virtual machines$"
    ):
        energy.find_meter(CELL, powercap=tmp_path / "absent")


def test_a_counter_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    package(tmp_path, 0, 1).write_text("many")
    with pytest.raises(EnergyUnreadableError, match="cannot be read"):
        energy.open_processor_meter(tmp_path)


def test_a_provider_without_a_known_counter_says_so() -> None:
    cell = CELL.model_copy(update={"provider": "CoreMLExecutionProvider"})
    with pytest.raises(EnergyUnreadableError, match="no energy counter is known for CoreMLExecutionProvider"):
        energy.find_meter(cell)


def test_a_device_without_a_driver_says_so() -> None:
    cell = CELL.model_copy(update={"provider": "CUDAExecutionProvider"})
    with pytest.raises(EnergyUnreadableError, match="no NVML of this driver"):
        energy.find_meter(cell, nvml="libonnxfarm-absent.so")


NVML = """
static unsigned long long millijoules = 5000;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &millijoules; return index < 2 ? 0 : 6; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *count) {
    return device == &millijoules ? (*count = (millijoules += 250), 0) : 2;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler to build a stand-in of NVML with")
def test_a_device_is_read_by_the_drivers_own_library(tmp_path: Path) -> None:
    library, source = tmp_path / "libnvidia-ml.so.1", tmp_path / "nvml.c"
    source.write_text(NVML)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    cell = CELL.model_copy(update={"provider": "CUDAExecutionProvider", "provider_options": {"device_id": "1"}})
    meter = energy.find_meter(cell, nvml=str(library))
    assert meter.name == "NVML, device 1"
    first = meter.read_j()
    assert meter.read_j() == pytest.approx(first + 0.25)
    with pytest.raises(EnergyUnreadableError, match="NVML answered 6 for device 7"):
        energy.open_nvidia_meter(7, library=str(library))


def test_energy_between_two_moments_is_linear_between_readings() -> None:
    readings = Readings(at_ns=[0, 100, 200], joules=[0.0, 1.0, 3.0])
    assert readings.compute_joules_between(50, 150) == pytest.approx(1.5)
    assert readings.compute_joules_between(0, 200) == pytest.approx(3.0)
    assert readings.compute_joules_between(0, 201) is None
    assert Readings().compute_joules_between(0, 1) is None
    assert energy.compute_energy_per_inference_mj(readings, [(0, 100, 10), (100, 200, 4), (150, 300, 1)]) == [
        100.0,
        500.0,
        None,
    ]


class FakeClock:
    """Its time moves with each look at the meter, so that no pause comes between."""

    now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def twenty_watts(self) -> float:
        self.now_ns += 100_000_000
        return 20.0 * self.now_ns / 1e9


def test_a_meter_is_read_beside_the_work_and_at_both_ends() -> None:
    clock = FakeClock()
    meter = Meter("twenty watts", clock.twenty_watts)
    with energy.read_during(meter, period_s=0.001, clock=clock.monotonic_ns) as readings:
        assert readings.at_ns[0] == 100_000_000
        wait_for(lambda: len(readings.at_ns) > 3, what="readings beside the work", seconds=10)
        beside = len(readings.at_ns)
    assert len(readings.at_ns) > beside
    first, last = readings.at_ns[0], readings.at_ns[-1]
    assert readings.compute_joules_between(first, last) == pytest.approx(20.0 * (last - first) / 1e9)
    assert readings.compute_joules_between(first, first + 250_000_000) == pytest.approx(5.0)


def test_a_counter_that_goes_away_leaves_no_energy_rather_than_a_wrong_one(tmp_path: Path) -> None:
    path = package(tmp_path, 0, 10)
    meter = energy.open_processor_meter(tmp_path)
    with energy.read_during(meter, period_s=0.01) as readings:
        path.unlink()
        time.sleep(0.05)
        moment = time.monotonic_ns()
    # whatever was read before it went away says nothing of this moment
    assert readings.joules
    assert readings.compute_joules_between(moment - 1000, moment) is None
