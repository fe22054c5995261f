"""Builds the wheel that nodes install, from the files of this farm: every process of the farm makes the same bytes.

onnxfarm is on no index, and a node has to speak the farm's version. So the farm zips the wheel itself from the files
that it runs. The metadata are those of pyproject.toml in a checkout, or of the installed distribution. A build backend
would need an index, a folder to write to, and files that a container of the farm does not have. Documents are left out,
since a node shows none.
Format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

NAME = "onnxfarm"
ROOT = Path(__file__).resolve().parents[2]
# the earliest time that a zip can hold: the same for all files, so that equal files give equal wheels
MOMENT = (1980, 1, 1, 0, 0, 0)
MODE = 0o644 << 16
# only these files are packed: the wheel is public, and a checkout may hold others
PACKAGED = ("*.py", "*.json", "*.npz", "*.html", "*.css", "*.js", "*.svg", "*.yaml", "py.typed", "LICENSE")
# files of an installed distribution's metadata that belong into a wheel; the others say how it was installed
METADATA_FILES = ("METADATA", "entry_points.txt", "licenses/*")
TAG = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel file with the sha256 of its content in hexadecimal digits."""

    name: str
    content: bytes
    sha256: str


class NoWheelError(RuntimeError):
    """The farm's own files were not found. The message says where they were searched."""


@lru_cache(maxsize=1)
def build_farm_wheel() -> Wheel:
    """Build the wheel of this farm, once in each process, from its checkout or its installed distribution.

    Raises NoWheelError where there is neither.
    """
    checkout = find_checkout()
    return _rebuild_installed() if checkout is None else build_wheel(checkout)


def find_checkout(code: Path = ROOT) -> Path | None:
    """Return the folder of the checkout that this farm runs from; None where it was installed."""
    return code if (code / "pyproject.toml").exists() else None


def build_wheel(checkout: Path) -> Wheel:
    """Build the wheel of a checkout, with the packages and metadata of its pyproject.toml, and only the files of
    PACKAGED."""
    declared = tomllib.loads((checkout / "pyproject.toml").read_text())
    project, packages = declared["project"], declared["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    paths = (path for package in packages for path in (checkout / package).rglob("*") if path.is_file())
    files = {
        path.relative_to(checkout).as_posix(): path.read_bytes()
        for path in paths
        if any(fnmatch(path.name, pattern) for pattern in PACKAGED)
    }
    metadata = {"METADATA": _write_metadata(project), "entry_points.txt": _write_entry_points(project)}
    if (checkout / "LICENSE").exists():
        metadata["licenses/LICENSE"] = (checkout / "LICENSE").read_bytes()
    return _zip_wheel(project["version"], files, metadata)


def _rebuild_installed(name: str = NAME) -> Wheel:
    """Build the wheel again that this farm was installed from, from the files that are still there."""
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        raise NoWheelError(f"{ROOT} has no pyproject.toml, and no distribution {name!r} is installed.") from None
    folder = f"{NAME}-{installed.version}.dist-info/"
    files, metadata = {}, {}
    for file in installed.files or ():
        name = file.as_posix()
        if name.startswith(folder):
            if any(fnmatch(name.removeprefix(folder), pattern) for pattern in METADATA_FILES):
                metadata[name.removeprefix(folder)] = file.read_binary()
        elif ".." not in file.parts and file.suffix != ".pyc":
            files[name] = file.read_binary()
    return _zip_wheel(installed.version, files, metadata)


def _write_metadata(project: Mapping[str, Any]) -> bytes:
    """Write the METADATA file (core metadata 2.4). Requirements of an extra are marked with its name."""
    lines = ["Metadata-Version: 2.4"]
    heads = {
        "Name": "name",
        "Version": "version",
        "Summary": "description",
        "License-Expression": "license",
        "Requires-Python": "requires-python",
    }
    lines += [f"{head}: {project[key]}" for head, key in heads.items()]
    lines += [f"Requires-Dist: {Requirement(requirement)}" for requirement in project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        for requirement in map(Requirement, requirements):
            bare = str(requirement).partition(";")[0].strip()
            marker = f'extra == "{extra}"'
            if requirement.marker:
                marker = f"({requirement.marker}) and {marker}"
            lines.append(f"Requires-Dist: {Requirement(f'{bare}; {marker}')}")
    return ("\n".join(lines) + "\n").encode()


def _write_entry_points(project: Mapping[str, Any]) -> bytes:
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()))
    ]
    return ("\n".join(lines) + "\n").encode()


def _zip_wheel(version: str, files: Mapping[str, bytes], metadata: Mapping[str, bytes]) -> Wheel:
    folder = f"{NAME}-{version}.dist-info"
    packed = {**files, f"{folder}/WHEEL": TAG.encode(), **{f"{folder}/{name}": text for name, text in metadata.items()}}
    record = []
    for name, content in sorted(packed.items()):
        digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}")
    packed[f"{folder}/RECORD"] = "\n".join([*record, f"{folder}/RECORD,,", ""]).encode()
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(packed, key=lambda name: (name.startswith(folder), name)):
            info = zipfile.ZipInfo(name, MOMENT)
            info.external_attr, info.compress_type = MODE, zipfile.ZIP_DEFLATED
            archive.writestr(info, packed[name])
    content = target.getvalue()
    return Wheel(f"{NAME}-{version}-py3-none-any.whl", content, sha256(content).hexdigest())
