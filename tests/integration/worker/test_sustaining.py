"""Blocks whose cells work on after the rounds, and the energy of an inference, by real runners."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from farm.contract.blocks import BlockOrder
from farm.contract.reasons import ReasonCode
from farm.contract.reports import EndReport
from farm.contract.sustained import CurveReport
from tests.integration.worker.making import MODELS, Workbench, checks, of_kind
from worker.agent.machine import energy
from worker.agent.measurement import sustained
from worker.agent.measurement.prepared_arms import prepare_arms
from worker.agent.measurement.runner_process import Launcher

pytestmark = pytest.mark.usefixtures("short_windows")

MODEL = MODELS / "relu_op17_ir8.onnx"


def test_each_cell_works_on_once_and_its_points_are_reported_last(bench: Workbench) -> None:
    first, other = bench.arm(0, MODEL), bench.arm(1, MODEL, workload={"batch": None, "concurrency": 2})
    twin = bench.arm(2, MODEL)
    reports = bench.execute([first, other, twin], sustained_s=3.0)
    curves = of_kind(reports, CurveReport)
    assert [curve.arm for curve in curves] == [0, 1], "the twin is the same cell"
    assert [type(report) for report in reports[-3:]] == [CurveReport, CurveReport, EndReport]
    for curve in curves:
        assert curve.reason is None
        assert 3 <= len(curve.points) <= 6
        # a point ends with the inference that reaches its end, which a busy machine may hold up
        assert 2.9 < sum(point.span_s for point in curve.points) < 9.0
        assert [point.at_s for point in curve.points] == sorted(point.at_s for point in curve.points)
        assert all(point.n > 10 and point.p90_ms >= point.p50_ms for point in curve.points)


def test_without_it_no_cell_works_on(bench: Workbench) -> None:
    assert not of_kind(bench.execute([bench.arm(0, MODEL)]), CurveReport)


def test_a_curve_ends_when_its_block_is_cancelled(bench: Workbench) -> None:
    began: list[float] = []

    def is_cancelled() -> bool:
        return bool(began) and time.monotonic() - began[0] > 1.5

    def say(text: str) -> None:
        if "sustained" in text:
            began.append(time.monotonic())

    bench.environment = replace(bench.environment, say=say)
    reports = bench.execute([bench.arm(0, MODEL)], sustained_s=60.0, is_cancelled=is_cancelled)
    assert began
    assert time.monotonic() - began[0] < 45
    last = reports[-1]
    assert isinstance(last, EndReport)
    assert last.reason.code == ReasonCode.CANCELLED


# energy


@pytest.fixture
def rapl(tmp_path: Path) -> Iterator[Path]:
    """A counter that grows by ten watts, as the kernel shows one."""
    folder = tmp_path / "powercap" / "intel-rapl:0"
    folder.mkdir(parents=True)
    (folder / "name").write_text("package-0")
    (folder / "max_energy_range_uj").write_text(str(1 << 40))
    counter, began, over = folder / "energy_uj", time.monotonic(), threading.Event()

    def count() -> None:
        while True:
            partial = folder / "next"
            partial.write_text(str(int(10e6 * (time.monotonic() - began))))
            partial.rename(counter)
            if over.wait(0.01):
                return

    thread = threading.Thread(target=count)
    thread.start()
    while not counter.exists():
        time.sleep(0.01)
    yield folder.parent
    over.set()
    thread.join()


def test_energy_of_an_inference_is_power_times_its_time(bench: Workbench, rapl: Path, tmp_path: Path) -> None:
    arm = bench.arm(0, MODEL)
    order = BlockOrder(block="block", attempt=1, arms=(arm,))
    ready, refused = prepare_arms(
        order, environment=bench.environment, folder=tmp_path / "block", is_cancelled=lambda: False
    )
    assert not refused
    meter = energy.open_processor_meter(rapl)
    with Launcher(
        stage=bench.environment.stage, timeout_s=60, memory_bytes=None, is_cancelled=lambda: False
    ) as launcher:
        curve = sustained.measure_curve(launcher, ready[0], total_s=3.0, find_meter=lambda cell: meter)
        (found,) = checks(bench.execute([arm])).values()
        again = sustained.add_energy(found, launcher, ready[0], find_meter=lambda cell: meter)
    for point in curve.points:
        assert point.energy_mj is not None
    # ten watts, shared by the inferences; between two points a busy machine may read the counter late
    joules = sum(point.energy_mj * point.n for point in curve.points if point.energy_mj) / 1000
    assert joules == pytest.approx(10 * sum(point.span_s for point in curve.points), rel=0.25)
    assert again.energy.mj is not None
    assert again.energy.text.startswith("RAPL, 1 package(s): everything on it")


def test_where_no_meter_can_be_read_the_check_says_so(bench: Workbench) -> None:
    (found,) = checks(bench.execute([bench.arm(0, MODEL)])).values()
    assert found.energy is not None
    if not list(energy.POWERCAP.glob("*-rapl:*")):
        assert found.energy.mj is None
        assert found.energy.text.startswith("not readable here: ")
    else:
        assert found.energy.mj is not None or found.energy.text.startswith("not readable here: ")
