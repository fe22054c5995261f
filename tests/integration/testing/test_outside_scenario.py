"""A scenario of a package from outside, that of docs/extending.md, is taken from its entry, and `bench` runs it."""

import json
from pathlib import Path

from tests.conftest import PROJECT
from tests.integration.testing.test_examples import MODULES
from tests.integration.testing.test_outside_provider import python
from tests.integration.worker.making import MODELS, share_runtimes

WORST = "paused_worst_ms"


def package(folder: Path) -> Path:
    """What pip leaves of the page's package, without pip."""
    about = folder / "acme_scenarios-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-scenarios\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[onnxfarm.scenarios]\npaused = acme_scenarios:PAUSED\n")
    for name in ("acme_scenarios", "acme_paused"):
        (folder / f"{name}.py").write_text(MODULES[name])
    return folder


def bench(packages: Path, home: Path, *words: str) -> tuple[int, str, Path]:
    """Its exit code, all that it said, and where its document is."""
    share_runtimes(home)
    asked = ["bench", MODELS / "cnn_dyn.onnx", "--ort", "1.31.1", "--home", home, "--budget", "glance"]
    asked += ["--threads", "1", "--json", home / "out.json", *words]
    lock = {"ONNXFARM_HOST_LOCK": str(home / "lock")}
    done = python("from onnxfarm.main import app; app()", packages, *asked, **lock)
    return done.returncode, " ".join((done.stdout + done.stderr).split()), home / "out.json"


def test_bench_runs_it_on_real_onnx_runtime(tmp_path: Path) -> None:
    code, said, written = bench(package(tmp_path / "packages"), tmp_path / "home", "--scenario", "paused:ms=2,single")
    assert code == 0, said
    cells = {cell["scenario"]: cell for cell in json.loads(written.read_text())["cells"]}
    assert set(cells) == {"paused:ms=2", "single"}
    phases = {phase["name"]: phase["metrics"]["p50_ms"] for phase in cells["paused:ms=2"]["phases"]}
    assert list(phases) == ["first half", "second half"]
    assert all(p50_ms > 0 for p50_ms in phases.values())
    assert cells["paused:ms=2"]["digest"] != cells["single"]["digest"]
    worst = {scenario: [one for one in cell["metrics"] if one["name"] == WORST] for scenario, cell in cells.items()}
    assert worst["single"] == []
    (told,) = worst["paused:ms=2"]
    assert (told["unit"], told["better"], told["n"]) == ("ms", "less", 1)
    assert told["value"] >= cells["paused:ms=2"]["p50_ms"]


def test_its_metric_is_an_entry_of_the_table_that_arms_are_compared_in(tmp_path: Path) -> None:
    code = (
        "from farm.rules.cells.metrics import BY_NAME, COMPARED, METRICS; from farm.rules.searches import targets; "
        f"name = {WORST!r}; print(METRICS[-1].name == name, BY_NAME[name].title, name in dict((m.name, j) for m, j in "
        "COMPARED), name in targets.NAMES)"
    )
    done = python(code, package(tmp_path / "packages"))
    assert done.stdout.split("\n")[0] == "True slowest inference True True", done.stderr


def test_without_the_package_it_is_no_scenario(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    code, said, _ = bench(tmp_path / "none", tmp_path / "home", "--scenario", "paused")
    assert code == 2
    assert "Unknown scenario 'paused'" in said


def test_a_node_without_its_file_ends_the_cell_in_one_sentence(tmp_path: Path) -> None:
    packages = package(tmp_path / "packages")
    (packages / "acme_paused.py").unlink()
    code, said, _ = bench(packages, tmp_path / "home", "--scenario", "paused")
    assert code == 1, said
    assert "The runner knows no scenario named 'paused': install the package that brings it beside" in said
    assert "The scenario 'paused' has no module acme_paused here" in said


def test_the_farm_s_schema_knows_it(tmp_path: Path) -> None:
    code = (
        "import django; django.setup(); from farm.api.api import api; "
        "from farm.rules.matrices.matrix import json_schema; print(json_schema())"
    )
    done = python(code, package(tmp_path / "packages"))
    assert done.returncode == 0, done.stderr
    assert "'paused'" in done.stdout
    assert str(PROJECT) not in done.stdout
