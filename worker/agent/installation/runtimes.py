"""The runtimes of a node, each a virtual environment that is installed when a block first needs it.

<folder>/onnxruntime-1.31.1/            the environment; it is complete once it has onnxfarm.json
<folder>/onnxruntime-1.31.1.lock        locked while installing, so that two agents do not install at once
<folder>/onnxruntime-1.31.1.failed      why the last install failed; for FAILURE_S seconds, no other is tried
"""

import contextlib
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.contract.blocks import WheelFile
from farm.contract.cells import Loads, Runtime
from farm.contract.reasons import Reason, ReasonCode, ReasonedError
from farm.rules.runtimes import distributions, engines, indexes, plugins
from worker.agent.installation import installer, locks, requirements, wheels

MARKER = "onnxfarm.json"
FAILURE_S = 300.0
DEFAULT_LIMIT_BYTES = 20 << 30

Say = Callable[[str], None]


class RuntimeUnavailableError(ReasonedError):
    """The runtime is not available on this node now. `reason` is the reason that its cells get."""


@dataclass(frozen=True)
class Installed:
    """An installed runtime. `providers` are those of its build, whether they work here or not.

    `python` is the interpreter of its environment. `loads`: the newest versions of models that it loads; None: not
    known.
    """

    runtime: Runtime
    folder: Path
    python_version: str = ""
    bytes: int = 0
    providers: tuple[str, ...] = ()
    packages: dict[str, str] = field(default_factory=dict)
    loads: Loads | None = None

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


class RuntimeStore:
    """The runtimes in a folder, which several agents of a user may share.

    After an install that exceeds `limit_bytes`, the least recently used ones are deleted.
    `allowed`: packages that this machine's owner allows by name, in addition to the known distributions. `indexes`: the
    farm's indexes that the owner allows. `wheels`: the folder of builds that were given as files. `list_loads` maps the
    name of each installed runtime to the newest versions of models that it loads, where they are known.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        say: Say = lambda _: None,
        allowed: Collection[str] = (),
        wheels: Path | None = None,
        indexes: Collection[str] = (),
    ) -> None:
        # the real path, because sandboxes name the interpreters in it
        self.folder = Path(os.path.realpath(folder))
        self.limit_bytes = limit_bytes
        self._allowed = frozenset(allowed)
        self._wheels = wheels
        self._indexes = frozenset(indexes)
        self._say = say

    def provide(
        self, runtime: Runtime, *, keep: Collection[Runtime] = (), files: Sequence[WheelFile] = ()
    ) -> Installed:
        """Return the runtime, and install it first if it is missing. Those of `keep` are not deleted to make room.

        `files`: the wheels of a runtime of the farm's own index. Only a known distribution or an allowed package is
        installed or used, whatever an order names. The returned runtime of a framework lacks the mode, such as
        `+compile`. Raises RuntimeUnavailableError where it is not allowed, or with the installer's essential line. For
        FAILURE_S, the same error is raised without another try, unless the disk was full.
        """
        refusal = distributions.refusal(runtime, allowed=self._allowed) or self._explain_refused_index(runtime, files)
        if refusal is not None:
            raise RuntimeUnavailableError(Reason(code=ReasonCode.UNKNOWN_RUNTIME, text=refusal))
        # the same installation runs a framework's programs in every mode
        runtime, *keep = (engines.engine_of(named).installed_as(named) for named in (runtime, *keep))
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock_runtime(runtime):
            installed = self._read_installed(self._make_path(runtime))
            if installed is None:
                self._raise_if_failed_lately(runtime)
                self._say(f"installing {runtime}")
                with tempfile.TemporaryDirectory(prefix=".wheel-", dir=self.folder) as scratch:
                    installed = self._install(runtime, files, Path(scratch))
                self._evict(keep={runtime, *keep})
        os.utime(installed.folder / MARKER)
        return installed

    def list_installed(self) -> tuple[Installed, ...]:
        """List the installed runtimes, in the order of their folders' names.

        Those that are not complete, or whose interpreter was removed from the machine, are left out.
        """
        if not self.folder.is_dir():
            return ()
        places = sorted(place for place in self.folder.iterdir() if place.is_dir())
        return tuple(entry for entry in map(self._read_installed, places) if entry is not None)

    def list_loads(self) -> dict[str, Loads]:
        return {str(entry.runtime): entry.loads for entry in self.list_installed() if entry.loads is not None}

    def _make_path(self, runtime: Runtime) -> Path:
        return self.folder / f"{runtime.distribution}-{runtime.version}"

    def _read_installed(self, place: Path) -> Installed | None:
        try:
            stored = json.loads((place / MARKER).read_text())
            installed = Installed(
                runtime=Runtime(**stored["runtime"]),
                folder=place,
                python_version=stored["python"],
                bytes=stored["bytes"],
                providers=tuple(stored["providers"]),
                packages=stored["packages"],
                loads=Loads.model_validate(stored["loads"]) if stored.get("loads") else None,
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # an environment is unusable if its interpreter was removed from the machine, or if a package brought a marker
        # that names another runtime
        return installed if installed.python.exists() and self._make_path(installed.runtime) == place else None

    def _explain_refused_index(self, runtime: Runtime, files: Sequence[WheelFile]) -> str | None:
        index = indexes.split_index(runtime.version)[1]
        if not files or index in self._indexes:
            return None
        return (
            f"{runtime.distribution} {indexes.describe_version(runtime.version)} is a build that the farm's admin "
            f"chose, and this machine's owner has not allowed its index: --allow-index {index or 'NAME'}."
        )

    def _install(self, runtime: Runtime, files: Sequence[WheelFile], scratch: Path) -> Installed:
        place, wheel = self._make_path(runtime), self._wheels and wheels.find_wheel(runtime, self._wheels)
        try:
            wheel = wheel or (wheels.download_best_wheel(files, scratch) if files else None)
            python = self._choose_python(
                wheels.find_supported_pythons(wheel) if wheel else requirements.find_supported_pythons(runtime)
            )
            recipe, module = requirements.make_recipe(runtime, wheel=wheel), engines.engine_of(runtime).module
            facts = installer.make_environment(
                place,
                python=python,
                requirements=locks.pin_requirements(runtime, recipe, allowed=self._allowed),
                with_dependencies=recipe.with_dependencies,
                module=module,
            )
        except installer.DiskFullError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise RuntimeUnavailableError(_make_reason(runtime, str(error))) from error
        except (installer.InstallError, wheels.WheelError) as error:
            shutil.rmtree(place, ignore_errors=True)
            raise RuntimeUnavailableError(self._remember_failure(runtime, str(error))) from error
        self._make_failure_path(runtime).unlink(missing_ok=True)
        loads = installer.probe_loadable_versions(place) if module == engines.ONNXRUNTIME.module else None
        marker: dict[str, object] = {**facts, "runtime": runtime.model_dump(), "bytes": measure_disk_bytes(place)}
        marker["loads"] = loads and loads.model_dump()
        (place / MARKER).write_text(json.dumps(marker))
        installed = self._read_installed(place)
        assert installed is not None
        return installed

    def _choose_python(self, allowed: tuple[int, int] | None) -> Path:
        """Return the agent's own interpreter if the runtime has wheels for it, else the newest that it has some for.

        `allowed`: the lowest and highest minor version of Python 3; None: any. Raises InstallError where none fits.
        """
        interpreter = Path(getattr(sys, "_base_executable", sys.executable))
        if allowed is None or allowed[0] <= sys.version_info.minor <= allowed[1]:
            return interpreter
        present = installer.find_pythons()
        fitting = [python for python in present if allowed[0] <= python.minor <= allowed[1]]
        if fitting:
            return fitting[0].path
        raise installer.InstallError(
            f"it has wheels for Python 3.{allowed[0]} to 3.{allowed[1]} only and none of these is on this machine; "
            f"install Python 3.{allowed[1]}"
        )

    def _raise_if_failed_lately(self, runtime: Runtime) -> None:
        path = self._make_failure_path(runtime)
        with contextlib.suppress(OSError, ValueError):
            if time.time() - path.stat().st_mtime < FAILURE_S:
                raise RuntimeUnavailableError(Reason.model_validate_json(path.read_text()))

    def _remember_failure(self, runtime: Runtime, detail: str) -> Reason:
        reason = _make_reason(runtime, detail + engines.engine_of(runtime).install_hint(plugins.core_of(runtime)))
        self._make_failure_path(runtime).write_text(reason.model_dump_json())
        return reason

    def _make_failure_path(self, runtime: Runtime) -> Path:
        return self._make_path(runtime).with_name(f"{self._make_path(runtime).name}.failed")

    def _evict(self, *, keep: Collection[Runtime]) -> None:
        """Delete the least recently used runtimes until the others fit the limit."""
        present = sorted(self.list_installed(), key=lambda entry: (entry.folder / MARKER).stat().st_mtime)
        total = sum(entry.bytes for entry in present)
        for entry in present:
            if total <= self.limit_bytes:
                return
            if entry.runtime not in keep:
                self._say(f"removing {entry.runtime}, used longest ago, to stay under {self.limit_bytes / 1e9:.1f} GB")
                (entry.folder / MARKER).unlink()
                shutil.rmtree(entry.folder, ignore_errors=True)
                total -= entry.bytes

    @contextlib.contextmanager
    def _lock_runtime(self, runtime: Runtime) -> Iterator[None]:
        path = self._make_path(runtime)
        with open(path.with_name(f"{path.name}.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def measure_disk_bytes(folder: Path) -> int:
    """Add up the bytes of all files in a folder, also of hard links, which uv makes to its cache."""
    return sum(os.lstat(os.path.join(place, name)).st_size for place, _, names in os.walk(folder) for name in names)


def _make_reason(runtime: Runtime, detail: str) -> Reason:
    text = f"{plugins.format_runtime(runtime)} could not be installed: {detail}"
    return Reason(code=ReasonCode.RUNTIME_INSTALL_FAILED, text=text[:2000])
