"""Packages of somebody who means harm, made of a few files: wheels and source archives as an index serves them."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """A pure wheel of these files in a folder that an installer looks into."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    everything = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*everything, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as wheel:
        for path, text in {**everything, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)
    return target


def make_source(folder: Path, name: str, version: str, setup: str) -> Path:
    """A source archive whose setup.py is this text."""
    stem = f"{name}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{stem}.tar.gz"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with tarfile.open(target, "w:gz") as archive:
        for path, text in (("setup.py", setup), ("PKG-INFO", metadata)):
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return target
