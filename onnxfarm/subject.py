"""What a command measures, and what a gate is given beside it, on this machine and on a farm."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class OwnJudge:
    """A function of the user's that judges outputs on this machine, in place of a recipe. `lower_is_better` None: it
    says so itself, by an attribute."""

    path: Path
    function: str
    lower_is_better: bool | None = None


# how outputs are judged on labelled data
Judging = str | OwnJudge


@dataclass(frozen=True)
class GateRequest:
    """What a gate measures, and until when: `deadline` is of `time.monotonic`, None: it may take any time."""

    subject: Subject
    deadline: float | None
    # of a block at most, on this machine, where somebody said how many; a farm's block has those of its budget
    rounds: int | None = None
    # begins with an A/A pair, and is judged by processor time
    is_of_pipeline: bool = False
    # the model in use now, where two are compared, or the farm's version of it; how both are judged on labelled data
    beside: Subject | None = None
    version: str = ""
    evaluation: Path | None = None
    recipe: Judging = ""
    # what a farm is told of where both come from: `branch` and `commit`, where said
    origin: Mapping[str, str] = field(default_factory=dict)
    base_commit: str = ""

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline
