"""The wheel as it could be published: the same bytes twice, and `bench` from it alone on every Python.

`python -m tests.acceptance.long_wheel`. Two clones of this commit build it; then each Python that is here measures a
model from two empty environments, of the newest dependencies and of the oldest that pyproject.toml allows.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from farm.fleet.farm_wheel import build_wheel

PROJECT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
# uv as this environment has it; which Pythons are here is found, none is fetched
UV = str(Path(sys.executable).with_name("uv"))
MODEL = PROJECT / "tests/models/cnn_dyn.onnx"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="onnxfarm-wheel-") as name:
        folder = Path(name)
        first, second = (built(folder / number) for number in ("1", "2"))
        assert digests(first) == digests(second), (digests(first), digests(second))
        print("built twice, the same bytes:", *digests(first))
        [wheel] = first.glob("*.whl")
        check_files(wheel)
        for python in PYTHONS:
            interpreter = interpreter_of(python)
            if interpreter is None:
                print(f"skipped: there is no Python {python} here")
                continue
            for resolution in ("highest", "lowest-direct"):
                print(f"Python {python}, {resolution}: {measured(wheel, interpreter, resolution, folder)}", flush=True)
    return 0


def built(folder: Path) -> Path:
    """What deploy/build makes in a clone of this commit."""
    run("git", "clone", "--quiet", str(PROJECT), str(folder))
    run("bash", "deploy/build", cwd=folder)
    return folder / "dist"


def digests(folder: Path) -> list[str]:
    return [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}" for path in sorted(folder.iterdir())]


def check_files(wheel: Path) -> None:
    """A farm gives nodes a wheel of its own making: the same files of the program."""
    folder = wheel.parent.parent
    own = folder / "own.whl"
    own.write_bytes(build_wheel(folder).content)
    assert program_of(wheel) == program_of(own), program_of(wheel) ^ program_of(own)


def program_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not re.match(r"onnxfarm-[\d.]+\.(dist-info|data)/", name)}


def interpreter_of(python: str) -> str | None:
    """The first that runs: a name on PATH may be a shim of pyenv's that does not."""
    named = shutil.which(f"python{python}")
    places = [
        *([named] if named else []),
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{python}.*/bin/python"))),
    ]
    for place in places:
        done = subprocess.run([place, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def measured(wheel: Path, python: str, resolution: str, folder: Path) -> str:
    """What `bench` says of a model in an environment that has the wheel and what it depends on, and nothing else."""
    venv = folder / f"{python.replace('/', '-')}-{resolution}"
    run(UV, "venv", "--quiet", "--python", python, str(venv))
    wanted = [*("--python", python), *("--resolution", resolution), *("--extra", "node"), "--no-header"]
    locked = venv / "requirements.txt"
    locked.write_text(run(UV, "pip", "compile", "--quiet", *wanted, "pyproject.toml", cwd=wheel.parent.parent))
    run(UV, "pip", "install", "--quiet", "--python", str(venv), "--requirement", str(locked))
    run(UV, "pip", "install", "--quiet", "--python", str(venv), "--no-deps", str(wheel))
    shutil.copy(MODEL, folder / "model.onnx")
    bench = [str(venv / "bin/onnxfarm"), "bench", "model.onnx", "--budget", "glance", "--json", "found.json"]
    run(*bench, cwd=folder, home=folder / "home")
    [cell] = json.loads((folder / "found.json").read_text())["cells"]
    assert (cell["status"], cell["parity"]["verdict"]) == ("done", "pass"), cell
    return f"{cell['p50_ms']:.3f} ms, outputs {cell['parity']['verdict']}"


def run(*words: str, cwd: Path = PROJECT, home: Path | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"UV_PYTHON_DOWNLOADS": "never"} | ({"ONNXFARM_HOME": str(home)} if home else {})
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
