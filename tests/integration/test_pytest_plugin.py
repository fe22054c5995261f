"""The fixture `onnx_gate`, in a pytest of its own: what passes, what fails with the comment's words, and who waits."""

import os
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from onnxfarm import gate_process
from tests.integration.forges import models
from worker.agent.machine import host_lock

ROOT = Path(__file__).resolve().parents[2]
# of an A/A pair nothing is measured
SAME = 'def test_encoder(onnx_gate):\n    onnx_gate("encoder.onnx", against="base.onnx")\n'


def pytest_in(
    folder: Path, test: str, *words: str, home: Path | None = None, before: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """pytest with the plug-in as the wheel's entry point loads it. `before`: where modules are looked for first."""
    (folder / "test_encoder.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "onnxfarm.pytest_plugin", "-p", "no:cacheprovider", "-q", *words]
    # with the tests' own settings it would get a home, and a lock of the machine, of its own
    ours = ("PYTEST_", "DJANGO_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"PYTHONPATH": f"{before}:{ROOT}"} | ({"ONNXFARM_HOME": str(home)} if home else {})
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=280
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("base", "encoder"):
        models.write(tmp_path / f"{name}.onnx", layers=2)
    return tmp_path


def test_a_model_that_did_not_change_passes_and_the_option_names_the_budgets(folder: Path) -> None:
    done = pytest_in(folder, SAME, "--onnxfarm-budget=standard", "-rP")
    assert done.returncode == 0, done.stdout
    assert "byte for byte" in done.stdout
    refused = pytest_in(folder, SAME, "--onnxfarm-budget=huge")
    assert (refused.returncode, "precise" in refused.stderr) == (4, True)


def test_what_cannot_be_measured_is_no_assertion(folder: Path) -> None:
    marked = '@pytest.mark.onnx_gate(against="base.onnx", max_slowdown="much")\n'
    done = pytest_in(
        folder,
        f"import pytest\n{marked}def test_encoder(onnx_gate):\n    onnx_gate('encoder.onnx')\n",
        "--strict-markers",
    )
    assert done.returncode == 1
    assert "RuntimeError: onnxfarm: --max-slowdown is 'much'" in done.stdout


def test_the_closest_marker_overrides_that_of_the_module(folder: Path) -> None:
    of_module = 'import pytest\npytestmark = pytest.mark.onnx_gate(against="base.onnx", max_slowdown="much")\n'
    of_test = '@pytest.mark.onnx_gate(max_slowdown="5 %")\n'
    done = pytest_in(folder, f"{of_module}{of_test}def test_encoder(onnx_gate):\n    onnx_gate('encoder.onnx')\n")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("does", "code"), [("raise AssertionError", 70), ("os._exit(1)", 70), ("os.abort()", 134)])
def test_a_gate_that_fails_itself_is_no_assertion_of_the_model(folder: Path, does: str, code: int) -> None:
    (folder / "broken").mkdir()
    (folder / "broken/filecmp.py").write_text(f"import os\ndef cmp(*sides, shallow):\n    {does}\n")
    done = pytest_in(folder, SAME, before=folder / "broken")
    assert done.returncode == 1
    assert f"RuntimeError: {gate_process.explain_end(code, '').partition(':')[0]}: " in done.stdout, done.stdout


def test_importing_the_plug_in_imports_nothing_of_ours_that_costs() -> None:
    heavy = "{'numpy', 'onnx', 'pydantic', 'typer', 'httpx2', 'farm'}"
    program = f"import sys, onnxfarm.pytest_plugin; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broken_model_fails_with_the_comments_words_and_a_machine_that_is_taken_is_waited_for(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(host_lock.ENVIRONMENT_NAME, str(folder / "lock"))
    models.write(folder / "encoder.onnx", layers=2, factor=float("nan"))
    call = 'onnx_gate("encoder.onnx", against="base.onnx", fail_on="parity,failed", ort="1.31.1", rounds=8, threads=2)'
    taken = threading.Event()

    def own() -> set[Path]:
        return set(folder.glob(f"lock.tickets/*-{os.getpid()}-*"))

    def measure_before() -> None:
        with host_lock.hold_machine(patience_s=60):
            taken.set()
            until = time.monotonic() + 120
            # whoever waits has a ticket, named by its process
            while time.monotonic() < until and not set(folder.glob("lock.tickets/*")) - own():
                time.sleep(0.1)
            time.sleep(1)

    other = threading.Thread(target=measure_before)
    other.start()
    taken.wait(60)
    done = pytest_in(folder, f"def test_encoder(onnx_gate):\n    {call}\n", "--junit-xml=found.xml", home=home)
    other.join()
    assert done.returncode == 1, done.stdout
    assert "AssertionError: ### ❌ `encoder.onnx` gives other outputs than its base" in done.stdout
    assert "measuring on this machine" in done.stdout
    properties = {each.get("name") for each in ElementTree.parse(folder / "found.xml").iter("property")}
    assert {"onnxfarm.model.verdict", "onnxfarm.model.ratio", "onnxfarm.model.ci_low"} <= properties
