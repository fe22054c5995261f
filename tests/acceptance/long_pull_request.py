"""A gated pull request from the wheel alone: `python -m tests.acceptance.long_pull_request`.

A repository with its model in Git LFS has a branch that makes it slower, one that exports it again and one that breaks
it. The steps of the action, the job of GitLab's template and a test of pytest's gate each of them: 1, 0, 1.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.long_wheel import UV, built, run
from tests.integration.forges import job, models
from tests.integration.forges.server import TOKEN, Forge, forge

MODEL = "models/encoder.onnx"
BRANCHES: Mapping[str, Mapping[str, Any]] = {
    "slower": {"idle": 3},
    "exported-again": {"prefix": "exported"},
    "broken": {"factor": float("nan")},
}
EXPECTED = {"slower": 1, "exported-again": 0, "broken": 1}
WORKFLOW = """name: model
on: pull_request
permissions: { contents: read, checks: write, pull-requests: write }
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: your-organisation/onnxfarm/deploy/github-action@v0.1.0
        with: { model: models/encoder.onnx }
"""
TEST = """def test_encoder(onnx_gate):
    onnx_gate("models/encoder.onnx", against="git:main", max_slowdown="5 %")
"""


def main() -> int:
    # nothing of this checkout but the action itself
    os.environ["PYTHONPATH"] = ""
    os.environ["CI"] = "true"
    with tempfile.TemporaryDirectory(prefix="onnxfarm-pull-request-") as name, forge() as known:
        folder = Path(name)
        [wheel] = built(folder / "source").glob("*.whl")
        venv = folder / "venv"
        run(UV, "venv", "--quiet", "--python", sys.executable, str(venv))
        wanted = [f"onnxfarm[node,pytest] @ {wheel.as_uri()}", "pytest-xdist"]
        run(UV, "pip", "install", "--quiet", "--python", str(venv), *wanted)
        base = repository(folder / "origin")
        action_of_github(folder, known, base, wheel)
        known.comments.clear()
        template_of_gitlab(folder, known, base, venv / "bin")
        plugin(folder, venv / "bin/python")
        assert known.wrong == [], known.wrong
    return 0


def repository(folder: Path) -> str:
    """What a team has: a model in LFS on main, and a branch for each change. The commit of main."""
    models.write(folder / MODEL)
    (folder / ".github/workflows").mkdir(parents=True)
    (folder / ".github/workflows/model.yml").write_text(WORKFLOW)
    (folder / "test_encoder.py").write_text(TEST)
    job.git(folder, "init", "-q", "--initial-branch=main")
    job.git(folder, "lfs", "install", "--local")
    job.git(folder, "lfs", "track", "*.onnx")
    job.git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    base = commit(folder, "main")
    assert job.git(folder, "cat-file", "-p", f"HEAD:{MODEL}").startswith("version https://git-lfs")
    for branch, changes in BRANCHES.items():
        job.git(folder, "checkout", "-q", "-b", branch, "main")
        models.write(folder / MODEL, **changes)
        commit(folder, branch)
    job.git(folder, "checkout", "-q", "main")
    return base


def commit(folder: Path, text: str) -> str:
    job.git(folder, "add", "-A")
    job.git(folder, "commit", "-qm", text)
    return job.git(folder, "rev-parse", "HEAD")


def checkout(folder: Path, branch: str, *, kind: str) -> Path:
    """As actions/checkout leaves it: one commit, and pointers in place of what LFS keeps."""
    clone = folder / f"{kind}-{branch}"
    skipping = {**os.environ, "GIT_LFS_SKIP_SMUDGE": "1"}
    words = ["git", "clone", "-q", "--depth=1", "--branch", branch, f"file://{folder / 'origin'}", str(clone)]
    subprocess.run(words, env=skipping, check=True)
    return clone


def action_of_github(folder: Path, known: Forge, base: str, wheel: Path) -> None:
    """The first two branches are pushes of one pull request, the third is another."""
    for branch, number in (("slower", 2), ("exported-again", 2), ("broken", 3)):
        done = job.github(
            checkout(folder, branch, kind="github"), known, base=base, number=number, home=folder / "home",
            place=folder / "runner", model=MODEL, wheel=str(wheel),
        )  # fmt: skip
        told("action", branch, done, known.comments[-1]["body"])
    writes = [method for method, path in known.calls if "comments" in path and method != "GET"]
    assert writes == ["POST", "PATCH", "POST"], writes
    assert [check["conclusion"] for check in known.checks] == ["failure", "success", "failure"]


def template_of_gitlab(folder: Path, known: Forge, base: str, programs: Path) -> None:
    for branch in BRANCHES:
        clone = checkout(folder, branch, kind="gitlab")
        done = job.gitlab(clone, known, base=base, home=folder / "home", programs=programs, GATE_MODEL=MODEL)
        told("template", branch, done, known.comments[-1]["body"])
        assert (clone / "onnxfarm-gate.xml").read_text().startswith("<?xml")
    assert len(known.comments) == 1


def plugin(folder: Path, python: Path) -> None:
    for branch in BRANCHES:
        job.git(folder / "origin", "checkout", "-q", branch)
        words = [str(python), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--junit-xml=found.xml"]
        environment = {**os.environ, "ONNXFARM_HOME": str(folder / "home")}
        done = subprocess.run(
            words, cwd=folder / "origin", env=environment, capture_output=True, text=True, timeout=900, check=False
        )
        told("plug-in", branch, job.Job(done.returncode, done.stdout + done.stderr), done.stdout)
        assert "onnxfarm.model.verdict" in (folder / "origin/found.xml").read_text()
        (folder / "origin/found.xml").unlink()


def told(kind: str, branch: str, done: job.Job, answer: str) -> None:
    assert done.code == EXPECTED[branch], (kind, branch, done.code, done.log[-4000:])
    assert TOKEN not in done.log
    headline = next((line for line in answer.splitlines() if "###" in line), "")
    assert branch != "slower" or "slower" in headline, (kind, headline)
    print(f"{kind}: {branch}: {done.code}: {headline}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
