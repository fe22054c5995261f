"""uv, asked to make one environment. Nothing is downloaded but wheels: no interpreters, and no sources to build.

Nothing of a package runs outside the sandbox: it is unpacked and compiled without being imported, and asked who it is
by a confined child.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from farm.contract.base import Message
from farm.contract.cells import Loads
from farm.contract.texts import replace_control_characters
from farm.rules.wording.numbers import size
from farm.sandbox import child, interpreters
from farm.sandbox.ending import Ending
from farm.sandbox.policy import Policy, SandboxError
from worker.agent.installation.locks import Requirements
from worker.agent.installation.stages import RUNNER

TIMEOUT_S = 900.0
PROBE_S = 120.0
PROBE_BYTES = 8 << 30
_PROBE = (
    "import json, {module} as o, importlib.metadata as m, os, sys;"
    "said = {{'version': str(o.__version__), 'providers': getattr(o, 'get_available_providers', list)(),"
    " 'python': sys.version.split()[0], 'packages': {{d.metadata['Name']: d.version for d in m.distributions()}}}};"
    "os.write(int(os.environ['ONNXFARM_REPLY_FD']), json.dumps(said).encode())"
)
# a runtime has some hundred models of one node to load; where it fails, nothing is known of it
LOADABLE_VERSIONS, LOADABLE_VERSIONS_S = RUNNER / "loadable_versions.py", 30.0
# of the byte code that would be made, two thirds; no launch imports it
_NOT_COMPILED = r"/site-packages/(.*/)?tests/|/site-packages/onnxruntime/transformers/"
# what uv and Python say where there is no room
_FULL = ("No space left on device", "Disk quota exceeded", "os error 28")
_MISMATCH = re.compile(r"Hash mismatch for `([^`\s]+)`")
_Name = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._+!-]{0,127}$")]


class InstallError(Exception):
    """The environment could not be made; the message holds the tool's essential line."""


@dataclass(frozen=True)
class Python:
    """An interpreter present on this machine."""

    path: Path
    minor: int


class Probed(Message):
    """What an environment says of itself. It is a package's own word: kept and shown, never run or used as a path."""

    version: _Name
    python: _Name
    providers: Annotated[
        tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$")], ...], Field(max_length=64)
    ]
    packages: Annotated[dict[_Name, _Name], Field(max_length=1000)]


class DiskFullError(InstallError):
    """There was no room, which another try may find."""


def find_uv() -> str:
    """Return the path of uv: of its wheel beside the agent, else of PATH. Raises InstallError where there is none."""
    try:
        import uv

        return os.fsdecode(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
        if found:
            return found
    raise InstallError("uv is not installed beside the agent; install onnxfarm[node], which brings it")


def find_pythons() -> list[Python]:
    """List the interpreters of CPython 3 that uv finds on this machine, newest first. Raises InstallError."""
    text = _run_tool([find_uv(), "--no-config", "python", "list", "--only-installed", "--output-format", "json"])
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
    folder: Path, *, python: Path, requirements: Requirements, with_dependencies: bool, module: str = "onnxruntime"
) -> dict[str, object]:
    """Make a virtual environment in `folder` with the requirements, compiled, and replace one that is there.

    Return what `module`, imported in the sandbox, says of it: `version`, `python`, `providers` and `packages`. Raises
    DiskFullError, and InstallError with the tool's essential line.
    """
    uv = find_uv()
    # a folder of our own: uv.toml and pyproject.toml of whatever folder somebody works in may name another index
    _run_tool([uv, "venv", "--quiet", "--clear", "--python", str(python), str(folder)], cwd=folder.parent)
    interpreter = folder / "bin" / "python"
    facts_before = _read_interpreter_facts(folder)
    requirements_file = folder / "onnxfarm-requirements.txt"
    requirements_file.write_text("".join(f"{line}\n" for line in requirements.lines))
    options = ["--only-binary", ":all:"]
    if requirements.is_whole:
        options.append("--require-hashes")
    if requirements.is_whole or not with_dependencies:
        options.append("--no-deps")
    _run_tool(
        [uv, "pip", "install", *options, "--python", str(interpreter), "--requirements", str(requirements_file)],
        cwd=folder.parent,
    )
    if _read_interpreter_facts(folder) != facts_before:
        raise InstallError("a package replaced the environment's interpreter or its settings; it is not used")
    _compile_packages(folder, python=python)
    return _probe_runtime(interpreter, module).model_dump()


def _read_interpreter_facts(folder: Path) -> dict[str, str]:
    """Read where the interpreter's links lead and what it reads first, as a wheel may bring files for any place."""
    links = {path.name: os.readlink(path) if path.is_symlink() else "" for path in (folder / "bin").glob("python*")}
    return {**links, "pyvenv.cfg": (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")}


def _compile_packages(folder: Path, *, python: Path) -> None:
    """Write byte code for what was unpacked, by the machine's own interpreter.

    That runs without `site` (-S), whose .pth files would run what a package says.
    """
    options = ["-q", "-j", "0", "-x", _NOT_COMPILED]
    _run_tool([str(python), "-I", "-S", "-m", "compileall", *options, str(folder / "lib")], may_fail=True)


def _probe_runtime(interpreter: Path, module: str) -> Probed:
    """Import the runtime where it can reach nothing. Raises InstallError."""
    try:
        ending = _run_confined(interpreter, _PROBE.format(module=module), timeout_s=PROBE_S)
    except SandboxError as error:
        raise InstallError(f"the installed runtime could not be inspected: {error}") from error
    if not ending.is_done:
        raise InstallError(extract_error_line(ending.stderr_tail) if ending.kind == "exited" else ending.describe())
    try:
        return Probed.model_validate_json(replace_control_characters(ending.reply))
    except ValidationError:
        raise InstallError(f"the installed runtime reports no version: {ending.reply[:200]!r}") from None


def probe_loadable_versions(folder: Path) -> Loads | None:
    """Try in the sandbox which versions of models an environment's runtime loads; None where that cannot be told."""
    try:
        ending = _run_confined(
            folder / "bin" / "python", LOADABLE_VERSIONS.read_text(encoding="utf-8"), timeout_s=LOADABLE_VERSIONS_S
        )
        return Loads.model_validate_json(ending.reply) if ending.is_done else None
    except (SandboxError, ValidationError):
        return None


def _run_confined(interpreter: Path, program: str, *, timeout_s: float) -> Ending:
    """Run a program's text in the sandbox. Raises SandboxError."""
    with tempfile.TemporaryDirectory(prefix="onnxfarm-probe-") as scratch:
        reads = interpreters.list_interpreter_paths(interpreter)
        policy = Policy(read_only=reads, read_write=(Path(scratch),), memory_bytes=PROBE_BYTES)
        return child.run_command([str(interpreter), "-I", "-c", program], policy=policy, timeout_s=timeout_s)


def extract_error_line(text: str) -> str:
    """Return the part of uv's output that says what is wrong, in one line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    if (other := _MISMATCH.search(plain)) is not None:
        return (
            f"the index's file of {other[1]} is not one of those that this agent knows by their sha256; was it a build "
            f"of your own, allow it by its name: --allow-package {other[1].partition('==')[0]}"
        )
    lines = [re.sub(r"^[\s×│├╰─▶╭]+", "", line).strip() for line in plain.splitlines()]
    lines = [line for line in lines if line and not line.lower().startswith(("using python", "hint:", "resolved"))]
    for start in ("Because", "cause: Because", "ImportError", "OSError", "Failed to", "error:"):
        for index, line in enumerate(lines):
            if line.startswith(start):
                return " ".join(lines[index : index + 3]).removeprefix("cause: ").removeprefix("error: ")[:500]
    return " ".join(lines[-2:])[:500] or "no output"


def _run_tool(argv: list[str], *, cwd: Path | None = None, may_fail: bool = False) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")}
    environment |= {"UV_PYTHON_DOWNLOADS": "never", "ORT_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
    try:
        process = subprocess.run(
            argv, capture_output=True, text=True, env=environment, cwd=cwd, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"{Path(argv[0]).name} took longer than {TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise InstallError(f"{argv[0]} could not be started: {error}") from error
    output = process.stderr or process.stdout
    if process.returncode != 0 and any(words in output for words in _FULL) and cwd is not None:
        free = size(shutil.disk_usage(cwd).free)
        raise DiskFullError(
            f"the disk of {cwd} is full: {free} are free, and a runtime takes 0.2 to 3 GB; make room there"
        )
    if process.returncode != 0 and not may_fail:
        raise InstallError(extract_error_line(output))
    return process.stdout
