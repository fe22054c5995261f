"""The order of a block: cells that a node measures together, in interleaved rounds."""

import re
from typing import Annotated

from pydantic import Field, StringConstraints

from farm.contract.base import Message, Sha256
from farm.contract.cells import Budget, Bundle, CellSpec, FileRef
from farm.contract.divergence import DivergenceOrder
from farm.contract.evaluation import EvaluationOrder
from farm.contract.sustained import MAX_SUSTAINED_S

MAX_ARMS = 16


class Tolerance(Message):
    """Element-wise tolerance of parity: |candidate - reference| <= atol + rtol * |reference|."""

    atol: Annotated[float, Field(ge=0)] = Field(default=1e-5, description="absolute part")
    rtol: Annotated[float, Field(ge=0)] = Field(default=1e-4, description="part that grows with the reference")


class WheelFile(Message):
    """A build on an index that an admin of the farm added: where it lies, and what it is."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,195}\.whl$")]
    url: Annotated[str, StringConstraints(pattern=r"^https?://[!-~]+$", max_length=1000)]
    sha256: Sha256


# how a node names an arm at the end of the text about its present work
SAID_ARM = re.compile(r", arm (\d{1,4})$")


class ArmOrder(Message):
    """One place in a block: the cell to measure and the files it needs."""

    arm: Annotated[int, Field(ge=0, lt=MAX_ARMS)]
    cell: CellSpec
    bundle: Bundle
    # the bundle as uploaded: traces are mapped to its nodes; equal to `bundle` for an identity recipe
    source: Bundle
    inputs: FileRef
    reference: FileRef | None = None
    tolerance: Tolerance = Tolerance()
    # tolerances of single outputs by name, which replace the one above
    tolerances: dict[str, Tolerance] = Field(default_factory=dict)
    # labelled data to judge the cell's outputs with; None where the model has none
    evaluation: EvaluationOrder | None = None
    # prompts to generate from; only sent to nodes that understand them
    prompts: Annotated[FileRef | None, Field(exclude_if=lambda prompts: prompts is None)] = None
    # wheels of a runtime from an added index, of which the node installs one; only sent to nodes that understand them
    wheels: Annotated[tuple[WheelFile, ...], Field(max_length=64, exclude_if=lambda wheels: not wheels)] = ()


class BlockOrder(Message):
    """Everything a node needs for an attempt at a block. Rounds beyond the first look are the farm's decision."""

    block: str
    attempt: Annotated[int, Field(ge=1)]
    budget: Budget = Budget.QUICK
    seed: int = 0
    max_rounds: Annotated[int, Field(ge=1, le=96)] = 8
    # how many rounds of the block were measured before; the numbers of rounds continue here
    first_round: Annotated[int, Field(ge=0)] = 0
    fail_fast: bool = False
    # wall-clock limit of one runner process, and of the whole block
    runner_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    block_timeout_s: Annotated[float, Field(gt=0, le=7200)] = 1800.0
    # rounds end early enough for the block to be over this long after its first check; None: no time was promised
    promised_s: Annotated[float, Field(gt=0)] | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    # how long each cell runs without pause after the rounds; 0: not at all
    sustained_s: Annotated[float, Field(ge=0, le=MAX_SUSTAINED_S)] = 0.0
    arms: Annotated[tuple[ArmOrder, ...], Field(min_length=1, max_length=MAX_ARMS)]
    # each launch of a round also traces a few inferences after its timed ones; only sent to nodes that understand it
    is_tracing_rounds: Annotated[bool, Field(exclude_if=lambda wanted: not wanted)] = False
    # questions about arms of a block that was measured before; with any, the node does nothing else
    divergences: tuple[DivergenceOrder, ...] = ()


class Lease(Message):
    """The answer to a successful claim: the order, the token of this attempt and how long the lease lasts."""

    order: BlockOrder
    token: str
    lease_s: float
