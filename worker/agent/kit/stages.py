"""A copy of the runner alone, so that a runtime's interpreter can import nothing else of ours.

The package is found beside this one and copied as files; importing it here would need onnxruntime.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[2] / "runner"


def stage_runner(folder: Path, *, source: Path = RUNNER) -> Path:
    """`folder`/runner-<digest>, a directory to start with `python -I`; made once per version of the source."""
    names = sorted(path.relative_to(source) for path in source.rglob("*.py"))
    digest = hashlib.sha256(b"".join(bytes(name) + (source / name).read_bytes() for name in names)).hexdigest()[:16]
    stage = Path(os.path.realpath(folder)) / f"runner-{digest}"
    if stage.is_dir():
        return stage
    stage.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".runner-", dir=stage.parent))
    package = partial / "worker" / "runner"
    for name in names:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, package / name)
    (partial / "worker" / "__init__.py").touch()
    shutil.copyfile(source / "__main__.py", partial / "__main__.py")
    try:
        partial.rename(stage)
    except OSError:
        # another agent was faster; its copy has the same digest
        shutil.rmtree(partial)
    return stage


@functools.cache
def compile_stage(stage: Path, *, python: Path) -> None:
    """Compile the stage for an interpreter: the runner cannot write there, and 20 ms a process would go to it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        # -S: what a package put into its .pth files runs in the sandbox alone
        [str(python), "-I", "-S", "-m", "compileall", "-q", str(stage)],
        env=environment,
        check=False,
        capture_output=True,
    )
