"""The first difference between a candidate and a reference, as `onnxfarm diverge` and nodes report it.

History of the document, `onnxfarm.divergence/1`
1  first version.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from farm.contract.base import Line, Message, Sha256
from farm.contract.outputs import Count, OutputParity
from farm.contract.reasons import Reason

SCHEMA: Literal["onnxfarm.divergence/1"] = "onnxfarm.divergence/1"


class Spread(Message):
    """The finite values of one tensor, and how many are not finite. None: it holds no finite number."""

    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    nan_count: Count = 0
    inf_count: Count = 0


class Place(Message):
    """The element where two tensors are furthest apart."""

    index: tuple[Count, ...]
    candidate: float
    reference: float


class TensorLook(OutputParity):
    """One tensor of both sides: how they differ, and what each of them holds."""

    candidate: Spread | None = None
    reference: Spread | None = None
    furthest: Place | None = None


class Side(Message):
    """What was run: a runtime on a provider, with its optimisations."""

    runtime: str
    provider: str = "CPUExecutionProvider"
    optimization: str = "all"

    def __str__(self) -> str:
        level = "" if self.optimization == "all" else f", optimisations {self.optimization}"
        return f"{self.runtime}, {self.provider.removesuffix('ExecutionProvider')}{level}"


class Seen(Message):
    """A tensor that was looked at on the way to the answer."""

    tensor: str
    agrees: bool


class Part(Message):
    """The smallest part of the model that shows the difference by itself.

    `shows_it`: run again from the files as they were written, it did. `nodes` stand in order of execution; `files` are
    the model with its external data, `inputs.npz` and `reference.npz`.
    """

    nodes: tuple[str, ...]
    main: str
    shows_it: bool
    look: TensorLook | None = None
    files: tuple[str, ...] = ()
    command: str = ""


class FirstDivergence(Message):
    """The first tensor beyond tolerance, the node that makes it, and the part of the model that shows it."""

    tensor: str
    node: str
    op_type: str
    look: TensorLook | None = None
    part: Part


class DivergenceDocument(Message):
    """The answer. `found` is None when every output agrees; `output` is the first output of the model that does not."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["onnxfarm.divergence/1"] = Field(default="onnxfarm.divergence/1", alias="schema")
    model: str
    candidate: Side
    reference: str
    atol: float
    rtol: float
    sentence: Line
    output: TensorLook | None = None
    found: FirstDivergence | None = None
    seen: tuple[Seen, ...] = ()

    def to_json(self) -> str:
        return self.model_dump_json(by_alias=True, indent=2)


class DivergenceOrder(Message):
    """A question about one arm of a block: where its outputs part from those of `against`, or of no optimisations."""

    arm: Count
    against: Count | None = None


class DivergenceReport(Message):
    """The answer to a DivergenceOrder. The part it names is uploaded apart, as a zip, by digest."""

    kind: Literal["diverge"] = "diverge"
    arm: Count
    against: Count | None = None
    reason: Reason | None = None
    document: DivergenceDocument | None = None
    part_sha256: Sha256 | None = None
