"""What a gate is given, on this machine and on a farm."""

import time
from dataclasses import dataclass
from pathlib import Path

from onnxfarm.subject import Subject


@dataclass(frozen=True)
class Given:
    """What is measured, and until when: `deadline` is of `time.monotonic`, None: no hurry."""

    subject: Subject
    deadline: float | None
    # of a block at most, on this machine, where somebody said how many; a farm's block has those of its budget
    rounds: int | None = None
    # the model in use now, where two are compared; how both are judged on labelled data
    beside: Subject | None = None
    evaluation: Path | None = None
    recipe: str = ""

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and time.monotonic() > self.deadline
