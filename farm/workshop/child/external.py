"""Checks external data: locations must lie inside the bundle, ranges inside their files. Runs in the child only.

`count_elements` takes a negative size as 0.
"""

import math
import re
from pathlib import Path

import onnx
from onnx import TensorProto

from farm.contract.cells import PROGRAM_ENDING
from farm.rules.runtimes.genai import CONFIG
from farm.workshop.child import traversal
from farm.workshop.problems import Problem, printable

_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")
# endings of further files that a bundle may hold next to its model and the model's data
_COMPANIONS = (".npz", ".pb", ".json", PROGRAM_ENDING)
# further endings that are allowed in a folder that onnxruntime-genai reads
_TOKENIZER_ENDINGS = (".txt", ".model", ".jinja")
_HALF_BYTE = {TensorProto.UINT4, TensorProto.INT4, TensorProto.FLOAT4E2M1}
_QUARTER_BYTE = {getattr(TensorProto, name) for name in ("UINT2", "INT2") if hasattr(TensorProto, name)}
# bits of an element; types that are not listed have 8
_BITS = {
    **dict.fromkeys(_HALF_BYTE, 4),
    **dict.fromkeys(_QUARTER_BYTE, 2),
    **dict.fromkeys((TensorProto.UINT16, TensorProto.INT16, TensorProto.FLOAT16, TensorProto.BFLOAT16), 16),
    **dict.fromkeys((TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32), 32),
    **dict.fromkeys((TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64, TensorProto.COMPLEX64), 64),
    TensorProto.COMPLEX128: 128,
}


def count_elements(tensor: TensorProto) -> int:
    return math.prod(max(0, dim) for dim in tensor.dims)


def count_tensor_bytes(tensor: TensorProto) -> int:
    """Count the bytes of a tensor's elements; strings count as nothing."""
    if tensor.data_type == TensorProto.STRING:
        return 0
    return (count_elements(tensor) * _BITS.get(tensor.data_type, 8) + 7) // 8


def read_location(tensor: TensorProto) -> dict[str, str]:
    """Read a tensor's external-data entries, such as `location` and `offset`; empty if it stores its own data.

    External data without any entry have an empty `location`.
    """
    if tensor.data_location != TensorProto.EXTERNAL:
        return {}
    return {entry.key: entry.value for entry in tensor.external_data} or {"location": ""}


def list_external_files(model: onnx.ModelProto) -> list[str]:
    """List, sorted, the names of the files that tensors of the model point to."""
    locations = {read_location(tensor).get("location", "") for tensor in traversal.iterate_tensors(model)}
    return sorted(locations - {""})


def check_external_data(model: onnx.ModelProto, *, folder: Path, main: str) -> None:
    """Check every tensor's external data, and that each file in the folder belongs to the model.

    Files that come with a model, such as an .npz, are allowed, and those of a tokenizer beside a configuration of
    onnxruntime-genai. Raises Problem with the code
    external_name, external_link, external_missing, external_self, external_range or external_extra.
    """
    for tensor in traversal.iterate_tensors(model):
        entries = read_location(tensor)
        if entries:
            _check_tensor(tensor, entries, folder=folder, main=main)
    used = {main, *list_external_files(model)}
    companions = (*_COMPANIONS, *_TOKENIZER_ENDINGS) if (folder / CONFIG).exists() else _COMPANIONS
    extra = [path.name for path in folder.iterdir() if path.name not in used and not path.name.endswith(companions)]
    if extra:
        raise Problem(
            "external_extra", f"{printable(min(extra))} belongs to no tensor of {printable(main)}: leave it out."
        )


def _check_tensor(tensor: TensorProto, entries: dict[str, str], *, folder: Path, main: str) -> None:
    name, location = printable(tensor.name or "unnamed"), entries.get("location", "")
    if not _NAME.fullmatch(location) or not location.strip("."):
        text = (
            f"The tensor {name} points to “{printable(location)}”, outside the bundle: "
            "save its data under a plain file name beside the model."
        )
        raise Problem("external_name", text)
    path = folder / location
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise Problem("external_link", f"{location} is a link or not a regular file: upload the file itself.")
    if not path.exists():
        raise Problem("external_missing", f"{location}, the external data of {name}, is missing: upload it too.")
    # the file system compares the names, since it may ignore case
    if path.samefile(folder / main):
        text = (
            f"The tensor {name} points into {printable(main)} itself: save its data in a file of their own beside it."
        )
        raise Problem("external_self", text)
    _check_range(tensor, entries, size=path.stat().st_size)


def _check_range(tensor: TensorProto, entries: dict[str, str], *, size: int) -> None:
    name, location = printable(tensor.name or "unnamed"), entries["location"]
    try:
        offset, length = (
            int(entries.get("offset") or 0),
            int(entries.get("length") or size - int(entries.get("offset") or 0)),
        )
    except ValueError as error:
        text = f"The tensor {name} has an offset or length in {location} that is not a number: export the model again."
        raise Problem("external_range", text) from error
    needed = count_tensor_bytes(tensor)
    is_inside = offset >= 0 and length >= 0 and offset + length <= size
    if not is_inside or any(dim < 0 for dim in tensor.dims) or needed > length:
        text = (
            f"The tensor {name} wants {needed:,} bytes at {offset:,} with length {length:,} of {location}, "
            f"which has {size:,}: the two files do not belong together, upload both from one export."
        )
        raise Problem("external_range", text)
