"""Builds of ONNX Runtime that are given as wheels. Each is a runtime, with the sha256 of its wheel in its version.

A wheel is copied to <folder>/onnxruntime-1.33.0+sha3f2a91b/, under its own name.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pydantic import ValidationError

from farm.base import downloads
from farm.contract.blocks import WheelFile
from farm.contract.cells import Runtime
from farm.rules.runtimes import indexes, plugins
from farm.rules.runtimes.distributions import EVERY_DISTRIBUTION

ENDING = ".whl"
FETCH_S = 1800.0
_PYTHON = re.compile(r"cp3([0-9]{1,2})")


class WheelError(ValueError):
    """A wheel cannot be measured here. The message is one sentence."""


def import_wheel(path: Path, folder: Path) -> Runtime:
    """Copy a wheel into the folder of wheels, and return its runtime, whose version ends in 7 digits of its sha256.

    Raises WheelError where it cannot be read, is no build of ONNX Runtime, or is for other machines, and OSError where
    the copy cannot be written.
    """
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        runtime = Runtime(distribution=name, version=f"{version.public}+sha{digest[:7]}")
    except OSError as problem:
        raise WheelError(f"{path} cannot be read ({problem.strerror}): give the path of a wheel.") from problem
    except (InvalidWheelFilename, ValidationError) as problem:
        raise WheelError(f"{path.name} is not named like a wheel: keep the name that its build gave it.") from problem
    if name not in EVERY_DISTRIBUTION or plugins.plugin_of(runtime) is not None:
        raise WheelError(f"{path.name} is a wheel of {name}, and builds of ONNX Runtime are measured.")
    platforms = {tag.platform for tag in tags}
    if platforms.isdisjoint(tag.platform for tag in sys_tags()):
        raise WheelError(f"{path.name} is for {', '.join(sorted(platforms))}, which this machine is not.")
    _copy_wheel(path, folder / f"{runtime.distribution}-{runtime.version}")
    return runtime


def store_wheel(runtime: Runtime, files: Sequence[WheelFile], folder: Path) -> None:
    """Download the wheel of a runtime that fits this machine best into the folder of wheels.

    Raises WheelError where none fits or can be downloaded, and OSError where the folder cannot be made.
    """
    place = folder / f"{runtime.distribution}-{runtime.version}"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=place) as draft:
        wheel = download_best_wheel(files, Path(draft))
        wheel.replace(place / wheel.name)


def find_wheel(runtime: Runtime, folder: Path) -> Path | None:
    return next((folder / f"{runtime.distribution}-{runtime.version}").glob(f"*{ENDING}"), None)


def download_best_wheel(files: Sequence[WheelFile], folder: Path) -> Path:
    """Download the one of these wheels that fits this machine best into `folder`, and return its path.

    One for this Python comes first, but one for another Python on this system fits too. Raises WheelError where none
    fits, the best cannot be downloaded or written, or one is not named like a wheel.
    """
    supported = list(sys_tags())
    ranks = {tag: rank for rank, tag in enumerate(supported)}
    platforms = {tag.platform for tag in supported}
    try:
        tags = {file.name: parse_wheel_filename(file.name)[3] for file in files}
    except InvalidWheelFilename as problem:
        raise WheelError(f"one of its files is not named like a wheel: {str(problem)[:200]}.") from problem
    fitting = [file for file in files if not platforms.isdisjoint(tag.platform for tag in tags[file.name])]
    if not fitting:
        raise WheelError(f"none of its {len(files)} wheels is for this machine.")
    best = min(fitting, key=lambda file: (min(ranks.get(tag, len(supported)) for tag in tags[file.name]), file.name))
    target = folder / best.name
    try:
        downloads.download_file(
            best.url,
            target,
            sha256=best.sha256,
            max_bytes=indexes.MAX_WHEEL_BYTES,
            timeout_s=FETCH_S,
            may_redirect_to=lambda address: indexes.may_be_fetched(address, beside=best.url),
        )
    except downloads.DownloadError as problem:
        raise WheelError(str(problem)) from problem
    except OSError as problem:
        raise WheelError(f"{best.name} cannot be kept: {problem.strerror}.") from problem
    return target


def find_supported_pythons(wheel: Path) -> tuple[int, int] | None:
    """Return the lowest and the highest minor version of Python 3 that a wheel is for; None: its name has none.

    The highest is 99 where the wheel is for any newer version too (abi3). Raises InvalidWheelFilename for a file
    that is not named like a wheel.
    """
    tags = parse_wheel_filename(wheel.name)[3]
    minors = [int(match[1]) for tag in tags if (match := _PYTHON.fullmatch(tag.interpreter))]
    if not minors:
        return None
    return min(minors), 99 if any(tag.abi == "abi3" for tag in tags) else max(minors)


def _copy_wheel(path: Path, place: Path) -> None:
    if (place / path.name).exists():
        return
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = place / f".{os.getpid()}"
    shutil.copyfile(path, draft)
    draft.replace(place / path.name)
