"""What a node is asked to do: a block, measured together on one node in interleaved rounds."""

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


# how a node names an arm at the end of what it says it does
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
    # of single outputs, by name, in place of the one above
    tolerances: dict[str, Tolerance] = Field(default_factory=dict)
    # labelled data to judge the cell's outputs on, where the model came with some
    evaluation: EvaluationOrder | None = None
    # of a cell that generates from given prompts; only told to nodes that can
    prompts: Annotated[FileRef | None, Field(exclude_if=lambda prompts: prompts is None)] = None
    # of a runtime of such an index: one of these is installed; only told to nodes that can
    wheels: Annotated[tuple[WheelFile, ...], Field(max_length=64, exclude_if=lambda wheels: not wheels)] = ()


class BlockOrder(Message):
    """Everything a node needs for an attempt at a block. Rounds beyond the first look are the farm's decision."""

    block: str
    attempt: Annotated[int, Field(ge=1)]
    budget: Budget = Budget.QUICK
    seed: int = 0
    max_rounds: Annotated[int, Field(ge=1, le=96)] = 8
    # rounds already measured under an earlier continuation: numbering goes on from here
    first_round: Annotated[int, Field(ge=0)] = 0
    fail_fast: bool = False
    # wall-clock limit of one runner process, and of the whole block
    runner_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    block_timeout_s: Annotated[float, Field(gt=0, le=7200)] = 1800.0
    # the block's rounds end so that it is over within this, counted from its first check; None: no promise was made
    promised_s: Annotated[float, Field(gt=0)] | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    # how long each cell works on once the rounds are over; 0: none does
    sustained_s: Annotated[float, Field(ge=0, le=MAX_SUSTAINED_S)] = 0.0
    arms: Annotated[tuple[ArmOrder, ...], Field(min_length=1, max_length=MAX_ARMS)]
    # each launch of a round also traces a few inferences after its windows; only told to nodes that can
    is_tracing_rounds: Annotated[bool, Field(exclude_if=lambda wanted: not wanted)] = False
    # questions about arms of a block that was measured; where there are some, nothing else is done
    divergences: tuple[DivergenceOrder, ...] = ()


class Lease(Message):
    """The answer to a successful claim: the order, the token of this attempt and how long the lease lasts."""

    order: BlockOrder
    token: str
    lease_s: float
