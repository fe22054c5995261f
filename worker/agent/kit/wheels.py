"""Builds of ONNX Runtime that lie as a wheel on this machine's disk, each a runtime of its own by the wheel's sha256.

<folder>/onnxruntime-1.33.0+sha3f2a91b/<the wheel under its own name>, copied.
"""

import hashlib
import os
import re
import shutil
from pathlib import Path

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pydantic import ValidationError

from farm.contract.cells import Runtime
from farm.rules.runtimes import plugins
from farm.rules.runtimes.distributions import EVERY_DISTRIBUTION

ENDING = ".whl"
_PYTHON = re.compile(r"cp3([0-9]{1,2})")


class WheelProblem(ValueError):
    """The file is no build that can be measured here. The message is one sentence."""


def take_in(path: Path, folder: Path) -> Runtime:
    """The runtime that a wheel is, kept in a folder for installing. Raises WheelProblem."""
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        runtime = Runtime(distribution=name, version=f"{version.public}+sha{digest[:7]}")
    except OSError as problem:
        raise WheelProblem(f"{path} cannot be read ({problem.strerror}): give the path of a wheel.") from problem
    except (InvalidWheelFilename, ValidationError) as problem:
        raise WheelProblem(f"{path.name} is not named like a wheel: keep the name that its build gave it.") from problem
    if name not in EVERY_DISTRIBUTION or plugins.plugin_of(runtime) is not None:
        raise WheelProblem(f"{path.name} is a wheel of {name}, and builds of ONNX Runtime are measured.")
    platforms = {tag.platform for tag in tags}
    if platforms.isdisjoint(tag.platform for tag in sys_tags()):
        raise WheelProblem(f"{path.name} is for {', '.join(sorted(platforms))}, which this machine is not.")
    _keep(path, folder / f"{runtime.distribution}-{runtime.version}")
    return runtime


def wheel_of(runtime: Runtime, folder: Path) -> Path | None:
    """The wheel that was taken in as this runtime; None: it is none of those."""
    return next((folder / f"{runtime.distribution}-{runtime.version}").glob(f"*{ENDING}"), None)


def pythons_of(wheel: Path) -> tuple[int, int] | None:
    """Lowest and highest minor of Python 3 that a wheel is for; None: it does not say."""
    tags = parse_wheel_filename(wheel.name)[3]
    minors = [int(found[1]) for tag in tags if (found := _PYTHON.fullmatch(tag.interpreter))]
    if not minors:
        return None
    return min(minors), 99 if any(tag.abi == "abi3" for tag in tags) else max(minors)


def _keep(path: Path, place: Path) -> None:
    if (place / path.name).exists():
        return
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place / f".{os.getpid()}"
    shutil.copyfile(path, draft)
    draft.replace(place / path.name)
