"""Describes what a command measures: a model with its inputs, how its outputs are judged, and the sides of a gate."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Subject:
    """A model to measure, with the files that the user gives for it. Without `inputs`, they are made from the seed.

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

    `lower_is_better` None: the function's own attribute `lower_is_better` decides.
    """

    path: Path
    function: str
    lower_is_better: bool | None = None


# how outputs are judged on labelled data: a recipe's text, or the user's own function
Judging = str | UserJudge


@dataclass(frozen=True)
class GateRequest:
    """What a gate measures: two models if there is a `base` or a `base_version`, otherwise two runtimes.

    `is_late`: whether the deadline is over; False without a deadline.
    """

    subject: Subject
    # a moment of time.monotonic(); None: there is no limit
    deadline: float | None
    # the maximum of rounds per block, on this machine only; None: the budget's
    rounds: int | None = None
    # whether this is a pipeline's machine: then an A/A pair is measured too, and processor time decides
    is_of_pipeline: bool = False
    # the model in use now, as files here
    base: Subject | None = None
    # the model in use now, as NAME@VERSION of the farm; empty: none
    base_version: str = ""
    # the commit that the base is from, if the user named it by its digest; otherwise empty
    base_commit: str = ""
    # labelled data, and how both models are judged on them
    evaluation: Path | None = None
    recipe: Judging = ""
    # the new model's `branch` and `commit`, if the user gives them
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline
