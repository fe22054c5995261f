"""Compresses a raw trace for the farm, piece by piece, because a model can make it arbitrarily long."""

import zlib
from pathlib import Path

from farm.contract.node import MAX_TRACE_BYTES, MAX_TRACE_UNPACKED_BYTES

PIECE_BYTES = 1 << 20
GZIP = 16 + zlib.MAX_WBITS


def compress_trace(
    raw: Path, *, max_bytes: int = MAX_TRACE_BYTES, max_unpacked_bytes: int = MAX_TRACE_UNPACKED_BYTES
) -> bytes | None:
    """Compress a file as gzip; None if it is larger than the farm accepts, before or after compression."""
    packer = zlib.compressobj(6, zlib.DEFLATED, GZIP)
    packed, read = bytearray(), 0
    with raw.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            read += len(piece)
            packed += packer.compress(piece)
            if read > max_unpacked_bytes or len(packed) > max_bytes:
                return None
    packed += packer.flush()
    return bytes(packed) if len(packed) <= max_bytes else None
