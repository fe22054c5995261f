"""The package of docs/extending.md beside the farm: what tests/integration/alerts/of_packages.py asks of it holds.

All that the page links is in it, by the entry points that it declares, and nothing else.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.conftest import PROJECT
from tests.integration.testing.test_examples import MODULES, PACKAGE

DECLARED = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
TABLES_OF_OURS = ("engines", "providers", "scenarios", "metrics", "accuracies", "changes", "channels")
INSIDE = PROJECT / "tests" / "integration" / "alerts" / "of_packages.py"


def package(folder: Path) -> Path:
    """What pip leaves of the page's package, without pip."""
    about = folder / "acme_onnxfarm-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-onnxfarm\nVersion: 1.0\n")
    lines = [
        line
        for group, points in DECLARED.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    return folder


def test_the_page_declares_every_kind_of_entry() -> None:
    assert set(DECLARED) == {f"onnxfarm.{name}" for name in TABLES_OF_OURS}


def test_a_run_with_them_ends_in_a_verdict_an_alert_and_a_delivered_notice(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (package(tmp_path), PROJECT)))
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", str(INSIDE)]
    environment = {**os.environ, "PYTHONPATH": path}
    environment = {name: value for name, value in environment.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(line, env=environment, cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
