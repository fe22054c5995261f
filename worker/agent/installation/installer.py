"""Makes the virtual environment of a runtime by uv. Only wheels are downloaded: no interpreters, no sources to build.

No code of a package runs outside the sandbox: packages are unpacked and compiled without being imported, and a confined
process reads their versions.
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
from farm.contract.texts import replace_controls_in_json
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
# a program that loads about a hundred models of one node, and its time limit
LOADABLE_VERSIONS, LOADABLE_VERSIONS_S = RUNNER / "loadable_versions.py", 30.0
# two thirds of the modules; no launch imports them
_NOT_COMPILED = r"/site-packages/(.*/)?tests/|/site-packages/onnxruntime/transformers/"
# messages of uv and Python about a full disk
_FULL = ("No space left on device", "Disk quota exceeded", "os error 28")
_MISMATCH = re.compile(r"Hash mismatch for `([^`\s]+)`")
_Name = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._+!-]{0,127}$")]


class InstallError(Exception):
    """The environment could not be made. The message has the tool's essential line."""


@dataclass(frozen=True)
class Python:
    """An interpreter of this machine; `minor` is its version's, 3.MINOR."""

    path: Path
    minor: int


class ProbedEnvironment(Message):
    """The versions that an environment reports. They are only shown, because a package may report anything."""

    version: _Name
    python: _Name
    providers: Annotated[
        tuple[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]{1,64}$")], ...], Field(max_length=64)
    ]
    packages: Annotated[dict[_Name, _Name], Field(max_length=1000)]


class DiskFullError(InstallError):
    """The disk is full. Another try may succeed."""


def find_uv() -> str:
    """Find uv: the one that is installed with the agent, else the one on PATH. Raises InstallError without either."""
    try:
        import uv

        return os.fsdecode(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        path = shutil.which("uv")
        if path:
            return path
    raise InstallError("uv is not installed beside the agent; install onnxfarm[node], which brings it")


def find_pythons() -> list[Python]:
    """List the interpreters of CPython 3 that uv finds on this machine, newest first.

    Raises InstallError where uv is missing or fails; empty where its answer cannot be read.
    """
    text = _run_tool([find_uv(), "--no-config", "python", "list", "--only-installed", "--output-format", "json"])
    try:
        entries = json.loads(text)
    except ValueError:
        return []
    pythons = [
        Python(path=Path(entry["path"]), minor=int(entry["version_parts"]["minor"]))
        for entry in entries
        if entry.get("implementation") == "cpython" and entry["version_parts"]["major"] == 3 and entry.get("path")
    ]
    return sorted(pythons, key=lambda python: -python.minor)


def make_environment(
    folder: Path, *, python: Path, requirements: Requirements, with_dependencies: bool, module: str = "onnxruntime"
) -> dict[str, object]:
    """Make a virtual environment in `folder`, install the requirements into it, and compile them.

    An earlier environment there is replaced. `with_dependencies` has no effect on requirements that are whole. Return
    the fields of ProbedEnvironment, as `module` reports them when it is imported in the sandbox. Raises DiskFullError,
    and InstallError with the essential line of uv's output, or where a package replaced the interpreter, or where
    `module` cannot be imported.
    """
    uv = find_uv()
    # in this folder, uv finds no uv.toml or pyproject.toml of the user's, which may name another index
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
    # the files of a wheel may overwrite the interpreter's links and settings
    links = {path.name: os.readlink(path) if path.is_symlink() else "" for path in (folder / "bin").glob("python*")}
    return {**links, "pyvenv.cfg": (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")}


def _compile_packages(folder: Path, *, python: Path) -> None:
    """Compile the packages to byte code, by the machine's own interpreter.

    It runs without `site` (-S), which would execute the .pth files of packages.
    """
    options = ["-q", "-j", "0", "-x", _NOT_COMPILED]
    _run_tool([str(python), "-I", "-S", "-m", "compileall", *options, str(folder / "lib")], may_fail=True)


def _probe_runtime(interpreter: Path, module: str) -> ProbedEnvironment:
    """Import the runtime in the sandbox, and return what it reports. Raises InstallError."""
    try:
        ending = _run_confined(interpreter, _PROBE.format(module=module), timeout_s=PROBE_S)
    except SandboxError as error:
        raise InstallError(f"the installed runtime could not be inspected: {error}") from error
    if not ending.is_done:
        raise InstallError(extract_error_line(ending.stderr_tail) if ending.kind == "exited" else ending.describe())
    try:
        return ProbedEnvironment.model_validate_json(replace_controls_in_json(ending.reply))
    except ValidationError:
        raise InstallError(f"the installed runtime reports no version: {ending.reply[:200]!r}") from None


def probe_loadable_versions(folder: Path) -> Loads | None:
    """Find out in the sandbox which versions of models an environment's runtime loads; None where that fails."""
    try:
        ending = _run_confined(
            folder / "bin" / "python", LOADABLE_VERSIONS.read_text(encoding="utf-8"), timeout_s=LOADABLE_VERSIONS_S
        )
        return Loads.model_validate_json(ending.reply) if ending.is_done else None
    except (SandboxError, ValidationError):
        return None


def _run_confined(interpreter: Path, program: str, *, timeout_s: float) -> Ending:
    with tempfile.TemporaryDirectory(prefix="onnxfarm-probe-") as scratch:
        reads = interpreters.list_interpreter_paths(interpreter)
        policy = Policy(read_only=reads, read_write=(Path(scratch),), memory_bytes=PROBE_BYTES)
        return child.run_command([str(interpreter), "-I", "-c", program], policy=policy, timeout_s=timeout_s)


def extract_error_line(text: str) -> str:
    """Extract from uv's output what failed, as one line of at most about 500 characters.

    For a hash mismatch, return a sentence that says how to allow the package; for an empty text, "no output".
    """
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
