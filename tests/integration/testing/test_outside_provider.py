"""A provider of a package from outside: farm, node and client take it from the package's entry, in processes of their
own, and `bench` measures on it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxfarm.testing import FakeRuntime, Step
from tests.conftest import PROJECT
from tests.integration.worker.making import MODELS

ACME = "AcmeExecutionProvider"
MODULE = f"""
from farm.rules.runtimes.provider import Build, Provider

ENTRY = Provider(
    name="{ACME}", short="acme", title="Acme", device="cpu", tag="acme", needs="an Acme card",
    builds=(Build("acme-onnxruntime"),), options=frozenset({{"speed"}}), defaults={{"speed": "2"}},
    probe_with="acme-onnxruntime==1.31.1",
)
"""


def package(folder: Path, module: str = MODULE) -> Path:
    """What pip leaves of a package with an entry, without pip."""
    about = folder / "acme_onnxfarm-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-onnxfarm\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[onnxfarm.providers]\nacme = acme_onnxfarm:ENTRY\n")
    (folder / "acme_onnxfarm.py").write_text(module)
    return folder


def python(code: str, packages: Path, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": os.pathsep.join(map(str, (packages, PROJECT))), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    line = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(line, env={**os.environ, **own, **environment}, check=False, capture_output=True, text=True)


def test_bench_measures_on_it(tmp_path: Path) -> None:
    tensors = {"x": ("tensor(float)", (2, 8))}
    FakeRuntime(
        inputs=tensors,
        outputs={"y": tensors["x"]},
        steps=[Step("Relu_0", "Relu", 100, provider=ACME)],
        distribution="acme-onnxruntime",
        providers=(ACME, "CPUExecutionProvider"),
    ).install(tmp_path / "runtimes")
    words = ["bench", MODELS / "relu_op13_ir7.onnx", "--provider", "acme", "--home", tmp_path, "--budget", "glance"]
    words += ["--ort", "acme-onnxruntime==1.31.1", "--threads", 2, "--json", tmp_path / "out.json"]
    words += ["--allow-package", "acme-onnxruntime"]
    lock = {"ONNXFARM_HOST_LOCK": str(tmp_path / "lock")}
    done = python("from onnxfarm.main import app; app()", package(tmp_path / "packages"), *words, **lock)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "out.json").read_text())["cells"]
    assert (cell["status"], cell["provider"], cell["hardware"]) == ("done", ACME, "acme")
    assert cell["provider_options"] == {"speed": "2"}
    assert cell["active_providers"][0] == ACME


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (
            "the farm",
            "import django; django.setup(); from farm.api.api import api; "
            "from farm.rules.matrices.matrix import json_schema; print(json_schema())",
        ),
        ("a node", "from worker.agent.abilities import probes; print(probes.BUILDS)"),
    ],
)
def test_it_is_known_to(tmp_path: Path, who: str, code: str) -> None:
    done = python(code, package(tmp_path / "packages"))
    assert done.returncode == 0, done.stderr
    assert "'acme'" in done.stdout, who


def test_a_broken_one_stops_nobody_and_is_said(tmp_path: Path) -> None:
    packages = package(tmp_path / "packages", "raise RuntimeError('no licence')")
    words = ["bench", MODELS / "relu_op13_ir7.onnx", "--provider", "acme", "--home", tmp_path]
    done = python("from onnxfarm.main import app; app()", packages, *words)
    sentence = "The provider 'acme' of acme-onnxfarm is left out: acme_onnxfarm:ENTRY cannot be imported"
    assert done.returncode == 2, done.stdout + done.stderr
    # in the log, and as the answer
    assert " ".join(done.stderr.split()).count(sentence) == 2, done.stderr
