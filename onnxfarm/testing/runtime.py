"""A virtual environment with a fake ONNX Runtime, in which the real runner measures times that the test sets."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from farm.contract.cells import Runtime
from worker.agent.installation.runtimes import MARKER, Installed, measure_disk_bytes

CPU = "CPUExecutionProvider"
# the type as ONNX Runtime writes it, and the dimensions: numbers, or names whose sizes come from the inputs
Tensor = tuple[str, Sequence[int | str]]

_STAND_IN = Path(__file__).with_name("stand_in.py")


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the fake model, which takes `us` microseconds of processor time in each inference."""

    name: str
    op_type: str
    us: float
    provider: str = CPU


@dataclass(frozen=True)
class FakeRuntime:
    """A fake release of ONNX Runtime with known speed, which runs the same model whatever file it is given.

    `inputs` and `outputs`: those of that model, by name. `providers`: those in the build. `starts`: the providers that
    start; None: all. A session falls back to the CPU for any other. `value`: the value of each element of each output.
    `packages`: versions of further packages that the environment claims to have.
    """

    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    steps: Sequence[Step]
    version: str = "1.31.1"
    distribution: str = "onnxruntime"
    providers: Sequence[str] = (CPU,)
    starts: Sequence[str] | None = None
    value: float = 0.0
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def runtime(self) -> Runtime:
        return Runtime(distribution=self.distribution, version=self.version)

    def install(self, folder: Path) -> Installed:
        """Make the environment in `folder`, the runtimes folder of a node or of `bench`.

        An environment of the same distribution and version is replaced.
        """
        place = Path(os.path.realpath(folder)) / f"{self.distribution}-{self.version}"
        shutil.rmtree(place, ignore_errors=True)
        packages = _make_environment(place)
        module = packages / "onnxruntime"
        module.mkdir()
        shutil.copy(_STAND_IN, module / "__init__.py")
        (module / "behaviour.json").write_text(json.dumps(self._make_behaviour()))
        _write_metadata(packages, name=self.distribution, version=self.version)
        versions = {"onnxruntime": self.version, "numpy": np.__version__, **self.packages}
        marker = {
            "runtime": self.runtime.model_dump(),
            "python": platform.python_version(),
            "bytes": measure_disk_bytes(place),
            "providers": list(self.providers),
            "packages": versions,
        }
        (place / MARKER).write_text(json.dumps(marker))
        return Installed(
            runtime=self.runtime,
            folder=place,
            python_version=platform.python_version(),
            bytes=measure_disk_bytes(place),
            providers=tuple(self.providers),
            packages=versions,
        )

    def _make_behaviour(self) -> dict[str, object]:
        return {
            "version": self.version,
            "providers": list(self.providers),
            "starts": list(self.providers if self.starts is None else self.starts),
            "inputs": _list_arguments(self.inputs),
            "outputs": _list_arguments(self.outputs),
            "steps": [asdict(step) for step in self.steps],
            "value": self.value,
        }


def _list_arguments(tensors: Mapping[str, Tensor]) -> list[dict[str, object]]:
    return [{"name": name, "type": kind, "shape": list(shape)} for name, (kind, shape) in tensors.items()]


def _make_environment(place: Path) -> Path:
    """Make a virtual environment with this interpreter and this numpy, and return its site-packages."""
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    packages = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(python)
    version = platform.python_version()
    (place / "pyvenv.cfg").write_text(f"home = {python.parent}\nversion = {version}\n")
    numpy_folder = Path(np.__file__).parent
    # numpy is linked rather than copied, because it has tens of megabytes
    for source in (numpy_folder, numpy_folder.with_name("numpy.libs")):
        if source.is_dir():
            shutil.copytree(
                source,
                packages / source.name,
                copy_function=_link_or_copy,
                ignore=shutil.ignore_patterns("tests", "__pycache__", "*.pyi"),
            )
    _write_metadata(packages, name="numpy", version=np.__version__)
    return packages


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk
        shutil.copy2(source, target)


def _write_metadata(packages: Path, *, name: str, version: str) -> None:
    """Write the metadata of a package for `importlib.metadata`."""
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
