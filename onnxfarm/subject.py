"""What a command measures on this machine."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """What is measured: a model, the inputs and outputs given beside it, and the seed of what is not given."""

    model: Path
    inputs: Path | None = None
    expected: Path | None = None
    seed: int = 0
