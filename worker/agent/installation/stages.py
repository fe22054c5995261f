"""Stages the runner: copies it to a separate folder, where a runtime's interpreter cannot import the rest of the farm.

The files are copied without importing them, which would need onnxruntime.
"""

import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from farm.rules.cells import scenarios
from farm.rules.quality import accuracy_metrics
from farm.rules.runtimes import engines

logger = logging.getLogger(__name__)
RUNNER = Path(__file__).resolve().parents[2] / "runner"


def stage_runner(folder: Path, *, source: Path = RUNNER) -> Path:
    """Copy the runner to `folder`/runner-DIGEST, once for each version of its source, and return that folder.

    It is started with `python -I`. Its subfolder `outside` has the engines, scenarios and accuracy metrics of other
    packages; one whose module is not found is logged and left out.
    """
    files = {path.relative_to(source): path for path in source.rglob("*.py")} | _list_outside_modules()
    names = sorted(files)
    digest = hashlib.sha256(b"".join(bytes(name) + files[name].read_bytes() for name in names)).hexdigest()[:16]
    stage = Path(os.path.realpath(folder)) / f"runner-{digest}"
    if stage.is_dir():
        return stage
    stage.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".runner-", dir=stage.parent))
    package = partial / "worker" / "runner"
    for name in names:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files[name], package / name)
    (partial / "worker" / "__init__.py").touch()
    shutil.copyfile(source / "__main__.py", partial / "__main__.py")
    try:
        partial.rename(stage)
    except OSError:
        # another agent was faster; its copy has the same digest
        shutil.rmtree(partial)
    return stage


def _list_outside_modules() -> dict[Path, Path]:
    """List the engines, scenarios and judges of other packages: their files by their paths in the stage."""
    modules = [("scenario", entry.name, entry.module) for entry in scenarios.OUTSIDE.entries]
    modules += [("engine", entry.name, entry.runner) for entry in engines.OUTSIDE.entries]
    modules += [("accuracy", entry.name, entry.judge) for entry in accuracy_metrics.OUTSIDE.entries]
    files: dict[Path, Path] = {}
    for kind, name, module in modules:
        try:
            spec = importlib.util.find_spec(module)
        except ImportError as problem:
            logger.warning("The %s %r has no module %s here: %s", kind, name, module, problem)
            continue
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            logger.warning("The %s %r has no module %s here, or not as a file.", kind, name, module)
            continue
        files[Path("outside") / kind / f"{name}.py"] = Path(spec.origin)
    return files


@functools.cache
def compile_stage(stage: Path, *, python: Path) -> None:
    """Compile the stage for an interpreter, once. The runner cannot write there, and would compile in each process.

    A compilation that fails is ignored.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        # -S: the .pth files of packages are executed only in the sandbox
        [str(python), "-I", "-S", "-m", "compileall", "-q", str(stage)],
        env=environment,
        check=False,
        capture_output=True,
    )
