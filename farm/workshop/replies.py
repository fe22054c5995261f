"""The answers of the workshop's functions, checked, as they come from a process that a model may have taken over.

Sizes are limited to what a row, a sentence and a page can hold. No answer holds a path: files have the names that the
order gave them.
"""

from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PrivateAttr, StringConstraints

from farm.contract.base import Message
from farm.workshop.inspection import Coverage

Text = Annotated[str, StringConstraints(max_length=4000)]
Name = Annotated[str, StringConstraints(max_length=1000)]


# what an integer column of the database holds
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Reply(Message):
    """Base of the answers; further keys are ignored."""

    model_config = ConfigDict(extra="ignore")


class Written(Reply):
    """The answer of a function that writes a file; the caller sets the path, which is never read from the answer."""

    _path: Path = PrivateAttr()

    @property
    def path(self) -> Path:
        return self._path

    def set_path(self, path: Path) -> None:
        self._path = path


class Done(Written):
    """An answer without fields."""


class Fed(Written):
    """Inputs that were written: their batch, the sizes of dynamic dimensions."""

    batch: Number | None
    sizes: dict[Name, Number]


class Referenced(Written):
    """A reference that was written: how it was made, and the outputs that are no tensors."""

    made_by: Annotated[str, StringConstraints(max_length=60)]
    skipped: tuple[Name, ...]


class Made(Reply):
    """A variant that was written: what was done, in sentences, and which operators a quantiser took."""

    history: Annotated[tuple[Text, ...], Field(max_length=200)]
    coverage: tuple[Coverage, ...]


class Prompted(Written):
    """Prompts that were written: rows, the tokens of each, and those of the text to score."""

    rows: Annotated[int, Field(ge=1, le=2**31 - 1)]
    tokens: Annotated[int, Field(ge=1, le=2**31 - 1)]
    text_tokens: Number


class Calibrated(Written):
    """Calibration data that were written: how many samples they hold."""

    samples: Number


class Labelled(Written):
    """Labelled data that were written: how many samples, the output that is judged, how many classes it has."""

    n: Number
    output: Annotated[str, StringConstraints(max_length=200)]
    classes: Number | None


class GraphNode(Reply):
    """One node, with the names of the tensors that it reads and makes."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Graph(Reply):
    """A model's nodes in order, its outputs, and the names of what it stores."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    stored: frozenset[str]
