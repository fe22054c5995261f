"""Validates the replies of the workshop's functions, which come from a process that a model may have taken over.

Sizes are limited to what a row, a sentence and a page can hold. No reply holds a path: files have the names that the
order gave them.
"""

from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, PrivateAttr, StringConstraints

from farm.contract.base import Message
from farm.workshop.inspection import Coverage

Text = Annotated[str, StringConstraints(max_length=4000)]
Name = Annotated[str, StringConstraints(max_length=1000)]


# the numbers from 0 on that an integer column of the database can hold
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Reply(Message):
    """Base of the replies; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore")


class FileReply(Reply):
    """The reply of a function that writes a file. The caller sets the path, which is never read from the reply.

    `path` raises AttributeError until then.
    """

    _path: Path = PrivateAttr()

    @property
    def path(self) -> Path:
        return self._path

    def set_path(self, path: Path) -> None:
        self._path = path


class InputsReply(FileReply):
    """Written inputs: their batch, and the sizes of dynamic dimensions."""

    batch: Number | None
    sizes: dict[Name, Number]


class ReferenceReply(FileReply):
    """Written reference outputs: how they were made, and the outputs left out: no tensors, or bfloat16 ones."""

    made_by: Annotated[str, StringConstraints(max_length=60)]
    skipped: tuple[Name, ...]


class VariantReply(Reply):
    """A written variant: what was done, in sentences, and which operators were quantised."""

    history: Annotated[tuple[Text, ...], Field(max_length=200)]
    coverage: tuple[Coverage, ...]


class PromptsReply(FileReply):
    """Written prompts: how many rows, tokens in each row, and tokens in the text to score."""

    rows: Annotated[int, Field(ge=1, le=2**31 - 1)]
    tokens: Annotated[int, Field(ge=1, le=2**31 - 1)]
    text_tokens: Number


class CalibrationReply(FileReply):
    """Written calibration data: how many samples they hold."""

    samples: Number


class LabelledDataReply(FileReply):
    """Written labelled data: how many samples, which output is judged, and how many classes there are, if any."""

    n: Number
    output: Annotated[str, StringConstraints(max_length=200)]
    classes: Number | None


class GraphNode(Reply):
    """A node, with the names of the tensors that it reads and writes."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Graph(Reply):
    """A model's nodes in order, the names of its outputs, and the names of its stored tensors."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]
    stored: frozenset[str]
