"""Reads and writes the .npz files of inputs, references and outputs."""

import zipfile
import zlib

import numpy as np

from worker.runner import faults
from worker.runner.parity import Array

Arrays = dict[str, Array]


def load_arrays(path: str) -> Arrays:
    """Read the arrays of an .npz by name. Raises Refusal where it cannot be read or holds pickled objects."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name], order="C") for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise faults.Refusal("artifact_unavailable", f"the arrays of {path} cannot be read: {error}") from error


def save_arrays(path: str, outputs: dict[str, object]) -> None:
    """Write the outputs that are arrays to an .npz, and leave the others out. Arrays of objects are written as text.

    `numpy.savez` is not used, because an output named `file` would clash with its parameter.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, value in outputs.items():
            if isinstance(value, np.ndarray):
                plain = value.astype(str) if value.dtype.kind == "O" else value
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, plain, allow_pickle=False)
