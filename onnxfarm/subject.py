"""What a command measures: a model with its inputs, how its outputs are judged, and the two sides of a gate."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """A model to measure, with the files that the user gives for it. Inputs that are not given are made from the seed.

    `expected`: the outputs expected of `inputs`. `source`: the framework's program that the model was exported from.
    `prompts`: token ids to generate from.
    """

    model: Path
    inputs: Path | None = None
    expected: Path | None = None
    seed: int = 0
    source: Path | None = None
    prompts: Path | None = None


@dataclass(frozen=True)
class UserJudge:
    """A function in the user's own Python file that judges outputs, in place of a recipe, on this machine only.

    `lower_is_better` None: the function's attribute of that name decides.
    """

    path: Path
    function: str
    lower_is_better: bool | None = None


# how outputs are judged on labelled data: a recipe's text, or the user's own function
Judging = str | UserJudge


@dataclass(frozen=True)
class GateRequest:
    """What a gate measures. It compares two models if it has a `base` or a `base_version`, and else two runtimes."""

    subject: Subject
    # a moment of time.monotonic(); None: there is no limit
    deadline: float | None
    # the maximum of rounds a block, on this machine; None: that of the budget
    rounds: int | None = None
    # for the machine of a pipeline: an A/A pair is measured too, and processor time decides
    is_of_pipeline: bool = False
    # the model in use now, as files here
    base: Subject | None = None
    # the same as NAME@VERSION of the farm
    base_version: str = ""
    # the commit that the base is from, where it is named by its digest
    base_commit: str = ""
    # labelled data, and how both models are judged on them
    evaluation: Path | None = None
    recipe: Judging = ""
    # the `branch` and `commit` of the new model, as far as they are given
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline
