"""uv, asked to make one environment. Nothing is downloaded but wheels: `UV_PYTHON_DOWNLOADS=never`."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 900.0
_PROBE = (
    "import json, onnxruntime as o, importlib.metadata as m, sys;"
    "print(json.dumps({'version': o.__version__, 'providers': o.get_available_providers(),"
    " 'python': sys.version.split()[0], 'packages': {d.metadata['Name']: d.version for d in m.distributions()}}))"
)


class InstallError(Exception):
    """The environment could not be made; the message holds the tool's essential line."""


@dataclass(frozen=True)
class Python:
    """An interpreter present on this machine."""

    path: Path
    minor: int


def uv_program() -> str:
    """uv's own binary from its wheel, else the one on PATH. Raises InstallError."""
    try:
        import uv

        return os.fsdecode(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found:
            return found
    raise InstallError("uv is not installed beside the agent; install onnxfarm[node], which brings it")


def pythons_present() -> list[Python]:
    """Interpreters of CPython 3 that uv finds on this machine, newest first."""
    text = _run([uv_program(), "python", "list", "--only-installed", "--output-format", "json"])
    try:
        entries = json.loads(text)
    except ValueError:
        return []
    found = [
        Python(path=Path(entry["path"]), minor=int(entry["version_parts"]["minor"]))
        for entry in entries
        if entry.get("implementation") == "cpython" and entry["version_parts"]["major"] == 3 and entry.get("path")
    ]
    return sorted(found, key=lambda python: -python.minor)


def make_environment(
    folder: Path, *, python: Path, requirements: tuple[str, ...], with_dependencies: bool
) -> dict[str, object]:
    """A virtual environment in `folder` with the requirements, compiled. Gives what it says of itself.

    Raises InstallError with the tool's essential line.
    """
    uv = uv_program()
    _run([uv, "venv", "--quiet", "--clear", "--python", str(python), str(folder)])
    interpreter = folder / "bin" / "python"
    options = [] if with_dependencies else ["--no-deps"]
    _run([uv, "pip", "install", "--compile-bytecode", *options, "--python", str(interpreter), *requirements])
    said = _run([str(interpreter), "-I", "-c", _PROBE])
    try:
        probed = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        raise InstallError(f"the installed runtime does not say its version: {said[-200:]!r}") from None
    return dict(probed)


def essential_line(text: str) -> str:
    """The part of uv's words that says what is wrong, in one line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [re.sub(r"^[\s×│├╰─▶╭]+", "", line).strip() for line in plain.splitlines()]
    lines = [line for line in lines if line and not line.lower().startswith(("using python", "hint:", "resolved"))]
    for start in ("Because", "cause: Because", "ImportError", "OSError", "Failed to", "error:"):
        for index, line in enumerate(lines):
            if line.startswith(start):
                return " ".join(lines[index : index + 3]).removeprefix("cause: ").removeprefix("error: ")[:500]
    return " ".join(lines[-2:])[:500] or "it said nothing"


def _run(argv: list[str]) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "ORT_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise InstallError(f"{Path(argv[0]).name} took longer than {TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise InstallError(f"{argv[0]} could not be started: {error}") from error
    if done.returncode != 0:
        raise InstallError(essential_line(done.stderr or done.stdout))
    return done.stdout
