"""Raw traces of a model that writes them without end."""

import gzip
import os
from pathlib import Path

import pytest

from worker.agent.measurement.raw_traces import compress_trace


def test_a_trace_is_packed_as_gzip(tmp_path: Path) -> None:
    raw = tmp_path / "profile.json"
    raw.write_bytes(b'[{"name": "x"}]' * 100_000)
    packed = compress_trace(raw)
    assert packed is not None
    assert gzip.decompress(packed) == raw.read_bytes()


@pytest.mark.parametrize("limit", [{"max_bytes": 1_000_000}, {"max_unpacked_bytes": 2_000_000}], ids=str)
def test_a_trace_that_the_farm_would_not_take_is_not_read_to_its_end(tmp_path: Path, limit: dict[str, int]) -> None:
    raw = tmp_path / "profile.json"
    raw.write_bytes(os.urandom(4_000_000))
    assert compress_trace(raw, **limit) is None
