"""One package brings an engine, a provider, a scenario and a metric, and `bench` compares two releases with them."""

import json
import os
from pathlib import Path

from onnxfarm.testing import FakeRuntime, Step
from tests.integration.testing.test_examples import MODULES
from tests.integration.testing.test_outside_provider import ACME, MODULE, python
from tests.integration.worker.making import MODELS

POINTS = """
[onnxfarm.engines]
acme = acme_engines:ACME
[onnxfarm.providers]
acme = acme_onnxfarm:ENTRY
[onnxfarm.metrics]
wait = acme_metrics:WAIT
[onnxfarm.changes]
waits = acme_changes:WAITS
[onnxfarm.scenarios]
paused = acme_scenarios:PAUSED
"""
# what the package index would have: a release that takes so many microseconds an inference
ENGINE = """
import time

__version__ = "{version}"


class Model:
    def run(self, inputs):
        ends_at = time.perf_counter_ns() + {us} * 1000
        while time.perf_counter_ns() < ends_at:
            pass
        return {{"y": inputs["x"].clip(0)}}


def load(path, *, threads):
    return Model()
"""


def package(folder: Path) -> Path:
    """What pip leaves of it, without pip."""
    about = folder / "acme_all-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-all\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    for name in ("acme_engines", "acme_engine_runner", "acme_scenarios", "acme_paused", "acme_metrics", "acme_changes"):
        (folder / f"{name}.py").write_text(MODULES[name])
    (folder / "acme_onnxfarm.py").write_text(
        MODULE.replace("acme-onnxruntime==1.31.1", "acme-engine==1.0").replace("acme-onnxruntime", "acme-engine")
    )
    return folder


def install(home: Path, *, version: str, us: int) -> None:
    """A release of the engine where `bench` looks for runtimes."""
    made = FakeRuntime(
        inputs={"x": ("tensor(float)", (2, 8))},
        outputs={"y": ("tensor(float)", (2, 8))},
        steps=[Step("Relu_0", "Relu", us)],
        version=version,
        distribution="acme-engine",
        providers=(ACME, "CPUExecutionProvider"),
    ).install(home / "runtimes")
    (packages,) = made.folder.glob("lib/*/site-packages")
    (packages / "acme_engine.py").write_text(ENGINE.format(version=version, us=us))


def bench(tmp_path: Path, *words: str) -> tuple[int, str]:
    asked = [
        "bench",
        MODELS / "relu_op13_ir7.onnx",
        "--home",
        tmp_path,
        "--threads",
        2,
        "--json",
        tmp_path / "out.json",
    ]
    asked += ["--allow-package", "acme-engine", *words]
    lock = {"ONNXFARM_HOST_LOCK": str(tmp_path / "lock")}
    done = python("from onnxfarm.main import app; app()", package(tmp_path / "packages"), *asked, **lock)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_two_releases_of_its_engine_on_its_provider_in_its_scenario_end_in_a_verdict(tmp_path: Path) -> None:
    install(tmp_path, version="1.0", us=200)
    install(tmp_path, version="1.1", us=400)
    runtimes = "acme-engine==1.0,acme-engine==1.1"
    code, said = bench(
        tmp_path, "--ort", runtimes, "--provider", "acme", "--scenario", "paused:ms=1", "--budget", "quick"
    )
    document = json.loads((tmp_path / "out.json").read_text()) if (tmp_path / "out.json").exists() else {}
    assert code == 0, said
    assert {(cell["status"], cell["scenario"], cell["provider"]) for cell in document["cells"]} == {
        ("done", "paused:ms=1", ACME)
    }
    (comparison,) = [one for one in document["comparisons"] if one["axis"] == "runtime"]
    assert comparison["verdict"] == "slower"
    (wait,) = [change for change in comparison["metrics"] if change["name"] == "acme_wait_ms"]
    # both releases wait alike, which a busy machine may leave undecided
    assert wait["verdict"] in ("equal", "undecided")
    assert (wait["unit"], wait["baseline"] >= 1.0) == ("ms", True)
    # terminal and pages say all three in their own words
    assert "Acme 1.1" in said
    words = (
        "import json, sys; from farm.contract.document import Document; from farm.rules.cells.axes import BY_NAME; "
        "from dashboard.figures import scenarios; from farm.rules.wording import titles; "
        "cell = Document.model_validate(json.load(open(sys.argv[1]))).cells[0]; "
        "print(titles.runtime_in_words(cell.runtime), '|', BY_NAME['scenario'].label_of(cell), '|', "
        "titles.provider(cell.provider), '|', scenarios.draw_figures(cell)[0].title)"
    )
    shown = python(words, tmp_path / "packages", tmp_path / "out.json")
    assert shown.stdout.startswith("Acme 1.0 | with pauses between inferences (ms 1) | Acme | p50 from "), shown.stderr


def test_a_node_without_its_file_ends_the_cell_in_one_sentence(tmp_path: Path) -> None:
    install(tmp_path, version="1.0", us=200)
    packages = package(tmp_path / "packages")
    (packages / "acme_engine_runner.py").unlink()
    os.rename(packages, tmp_path / "others")
    asked = [
        "bench",
        MODELS / "relu_op13_ir7.onnx",
        "--home",
        tmp_path,
        "--budget",
        "glance",
        "--ort",
        "acme-engine==1.0",
    ]
    lock = {"ONNXFARM_HOST_LOCK": str(tmp_path / "lock")}
    words = [*asked, "--allow-package", "acme-engine"]
    done = python("from onnxfarm.main import app; app()", tmp_path / "others", *words, **lock)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "The runner knows no engine named 'acme': install the package that brings it beside" in said
