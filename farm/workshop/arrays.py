"""Reads and writes named arrays as `.npz` files, with any names and never a pickle."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farm.workshop.problems import Problem

Array = NDArray[Any]
Arrays = dict[str, Array]


# limit of the list of members at an archive's end, which zipfile reads in one piece; some forty thousand arrays fit
MAX_LISTED_BYTES = 4 << 20


class ArraysError(Problem):
    """The file cannot be read as arrays; the message names it and says what to do."""

    def __init__(self, text: str) -> None:
        super().__init__("bad_arrays", text)


def write_npz(path: Path, arrays: Mapping[str, Array]) -> Path:
    """Write the arrays in their order, always the same bytes for the same arrays, and return the path.

    numpy's own `savez` takes names as keywords and so refuses a tensor called `file`.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(member, "w", force_zip64=True) as out:
                np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return path


def read_npz(path: Path, *, limit_bytes: int | None = None) -> Arrays:
    """Read every array of the file by name. Raises ArraysError for anything but an `.npz` of plain arrays.

    It raises ArraysError too for a missing file, and for more than `limit_bytes` of unpacked arrays together. The limit
    is for files whose writer is not trusted; None sets none.
    """
    try:
        with _ShortReads(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            unpacked_bytes = sum(info.file_size for info in archive.infolist())
            if limit_bytes is not None and unpacked_bytes > limit_bytes:
                raise ArraysError(
                    f"{path.name} holds {unpacked_bytes:,} bytes of arrays; at most {limit_bytes:,} are read."
                )
            arrays = {}
            for info in archive.infolist():
                with archive.open(info) as stored:
                    array = np.lib.format.read_array(stored, allow_pickle=False)
                arrays[info.filename.removesuffix(".npy")] = np.asarray(array)
            return arrays
    except zipfile.BadZipFile as error:
        with path.open("rb") as start:
            if start.read(6) == b"\x93NUMPY":
                text = f"{path.name} is a single array, not an .npz: save it with its input's name as key."
                raise ArraysError(text) from error
        raise ArraysError(f"{path.name} is not an .npz archive ({error}): write it with numpy.savez.") from error
    except (OSError, EOFError, ValueError, NotImplementedError, zlib.error, MemoryError) as error:
        raise ArraysError(f"{path.name} holds no plain arrays ({error}): write it with numpy.savez.") from error


class _ShortReads(io.BufferedReader):
    """A file that refuses long reads: arrays are read in pieces, but zipfile reads an archive's list at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_LISTED_BYTES:
            raise ArraysError(f"The archive lists more arrays than {MAX_LISTED_BYTES:,} bytes can name.")
        return super().read(size)
