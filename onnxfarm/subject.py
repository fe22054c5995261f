"""What a command measures on this machine."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """What is measured: a model, what was given beside it, and the seed of what is not given.

    `source`: the framework's program that the model was exported beside. `prompts`: token ids to generate from.
    """

    model: Path
    inputs: Path | None = None
    expected: Path | None = None
    seed: int = 0
    source: Path | None = None
    prompts: Path | None = None
