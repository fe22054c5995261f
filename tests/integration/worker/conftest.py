"""A workbench of its own for each test, and what is fed to decoders."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from farm.workshop.samples import decoder
from tests.bench.blocks import brief_windows
from tests.integration.worker.making import Workbench
from worker.agent.installation.stages import stage_runner


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def misbehaving_bench(tmp_path: Path) -> Workbench:
    """A workbench whose runner does what a cell's session asks it to: see misbehaving.py."""
    stage = tmp_path / "misbehaving"
    shutil.copytree(stage_runner(tmp_path / "stage"), stage)
    shutil.copyfile(Path(__file__).with_name("misbehaving.py"), stage / "__main__.py")
    return Workbench(tmp_path, stage=stage)


@pytest.fixture
def short_windows() -> Iterator[None]:
    """What is asserted does not depend on how long a sample measures, nor on what else the machine does."""
    with brief_windows():
        yield


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A prompt of four tokens with nothing before it, for the check pass."""
    empty = np.zeros((1, decoder.KEY_HEADS, 0, decoder.WIDTH), dtype=np.float32)
    caches = {f"past_key_values.{layer}.{part}": empty for layer in (0, 1) for part in ("key", "value")}
    whole = {"input_ids": np.arange(4), "attention_mask": np.ones(4, dtype=np.int64), "position_ids": np.arange(4)}
    path = tmp_path / "prompt.inputs.npz"
    np.savez(path, **{name: values[None] for name, values in whole.items()}, **caches)
    return path
