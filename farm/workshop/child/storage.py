"""Writes a model to a folder: in one file, or with its data in a second file if it is large. Child only."""

from pathlib import Path

import onnx

# well below protobuf's limit of 2 GB
_LARGE_BYTES = 1_500_000_000


def is_too_large_for_protobuf(model: onnx.ModelProto) -> bool:
    return int(model.ByteSize()) > _LARGE_BYTES


def write_model(model: onnx.ModelProto, out: Path, main: str, *, with_data: bool = False) -> list[str]:
    """Write `main` into `out` and return the names of the files that it wrote.

    With `with_data`, or if the model is large, weights from 1024 bytes on are written to `main`.data.
    """
    if not with_data and not is_too_large_for_protobuf(model):
        (out / main).write_bytes(model.SerializeToString(deterministic=True))
        return [main]
    data = f"{main}.data"
    onnx.save_model(model, out / main, save_as_external_data=True, location=data, size_threshold=1024)
    return [name for name in (main, data) if (out / name).exists()]
