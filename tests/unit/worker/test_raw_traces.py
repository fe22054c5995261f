"""Raw traces of a model that writes them without end."""

import gzip
import os
from pathlib import Path

import pytest

from worker.agent.passes import raw_traces
from worker.agent.passes.raw_traces import packed_trace


def test_a_trace_is_packed_as_gzip(tmp_path: Path) -> None:
    raw = tmp_path / "profile.json"
    raw.write_bytes(b'[{"name": "x"}]' * 100_000)
    packed = packed_trace(raw)
    assert packed is not None
    assert gzip.decompress(packed) == raw.read_bytes()


@pytest.mark.parametrize(("name", "most"), [("MAX_TRACE_BYTES", 1_000_000), ("MAX_TRACE_UNPACKED_BYTES", 2_000_000)])
def test_a_trace_that_the_farm_would_not_take_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(raw_traces, name, most)
    raw = tmp_path / "profile.json"
    raw.write_bytes(os.urandom(4_000_000))
    assert packed_trace(raw) is None
