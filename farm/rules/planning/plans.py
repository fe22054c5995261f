"""What planning answers: blocks of arms, the comparisons they will make, and the points that cannot run."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from farm.contract.base import Message
from farm.contract.blocks import MAX_ARMS, Tolerance
from farm.contract.cells import Budget, CellSpec, Loads, SpelledRuntime
from farm.contract.reasons import Reason, WayOut
from farm.rules.runtimes.provider import Provider

# a block ends within this many times its planned duration
PROMISE_FACTOR = 2.0
# from the first look on, rounds leave this share of that duration to further traces
TRACES_SHARE = 0.25
# the largest share of a block's rounds that are measured again because a sample stayed disturbed
MAX_REPLACED_SHARE = 0.5
# the most rounds that a node measures, replacements included
MAX_ORDERED_ROUNDS = 96


class NodeOffer(Message):
    """What a node can take."""

    id: str
    name: str = ""
    # the tags and the providers that were proven on it
    tags: frozenset[str] = frozenset({"cpu"})
    providers: frozenset[str] = frozenset({"CPUExecutionProvider"})
    # the distributions that its owner allows; empty: any
    distributions: frozenset[str] = frozenset()
    is_browser: bool = False
    # runtimes that it knows of beyond the farm's table, and what they were seen to load
    versions: frozenset[SpelledRuntime] = frozenset()
    loads: dict[str, Loads] = Field(default_factory=dict)
    # logical cores by its own count; None until it is known
    cores: Annotated[int, Field(ge=1)] | None = None
    max_arms: Annotated[int, Field(ge=1, le=MAX_ARMS)] = MAX_ARMS
    # standard deviation of ln(new / old) over rounds of its A/A pairs; None until it is known
    noise: Annotated[float, Field(gt=0)] | None = None
    # the margin by its A/A history: smaller changes count as equal; then the margins of further metrics, by name
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    margins: dict[str, float] = Field(default_factory=dict)
    # providers that it has not proven: those that it may try, and those that its owner can be asked for
    may_try: frozenset[str] = frozenset()
    may_be_asked: frozenset[str] = frozenset()
    # how many blocks it measured since its last A/A pair; None: it never had one
    blocks_since_pair: Annotated[int, Field(ge=0)] | None = None
    # whether it joined within a day
    is_first_day: bool = False

    def with_proven_provider(self, provider: Provider) -> "NodeOffer":
        proven = {"providers": self.providers | {provider.name}, "tags": self.tags | {provider.tag}}
        return self.model_copy(update=proven)


class Arm(Message):
    """One place in a block."""

    arm: Annotated[int, Field(ge=0, lt=MAX_ARMS)] = Field(description="its number in the block")
    id: str = Field(description="unique in the plan")
    cell: str = Field(description="shared by the places where one cell is repeated")
    positions: dict[str, int] = Field(description="the positions of its values on the axes of the matrix")
    labels: dict[str, str] = Field(default_factory=dict, description="its values in words, by axis")
    spec: CellSpec = Field(description="what is measured")
    twin_of: int | None = Field(
        default=None,
        description="an earlier arm of the block with the same cell, with which it is an A/A pair; null: none",
    )
    trial: str | None = Field(
        default=None,
        exclude_if=lambda node: node is None,
        description="number of the node that first tries its provider, which nobody has proven; left out: none has to",
    )


class PlannedComparison(Message):
    """Two arms that differ in one axis."""

    baseline: int = Field(description="number of the arm with the earlier value")
    candidate: int = Field(description="number of the other arm")
    axis: str = Field(description="what they differ in; twin: in nothing")
    smallest_detectable: float | None = Field(
        default=None,
        description="the smallest change that would be called, as a fraction, at the last round that the budget allows",
    )


class Wish(Message):
    """A change that somebody wants to see, and what it costs."""

    change: float = Field(description="as a fraction")
    budget: Budget | None = Field(default=None, description="the one that measures so many rounds")
    rounds: int | None = Field(default=None, description="how many it takes; null: no number of rounds sees it")
    minutes: float | None = Field(default=None, description="of the block")
    text: str = Field(description="all of it in a sentence")


class PlannedBlock(Message):
    """Cells to be measured together."""

    id: str = Field(description="unique in the plan")
    arms: Annotated[tuple[Arm, ...], Field(min_length=1, max_length=MAX_ARMS)] = Field(
        description="what is measured together"
    )
    comparisons: tuple[PlannedComparison, ...] = Field(description="which arms are compared")
    tags: tuple[str, ...] = Field(description="what a node must carry, all of it; the first names the queue")
    nodes: tuple[str, ...] = Field(
        default=(), description="numbers of the nodes that may take it; empty: no fleet was asked"
    )
    budget: Budget = Field(description="glance, quick, standard or precise")
    min_rounds: int = Field(description="rounds before the first look")
    max_rounds: int = Field(description="rounds at most")
    is_replacing: bool = Field(
        default=True, description="whether a disturbed round is followed by another beyond these"
    )
    is_of_pipeline: bool = Field(
        default=False,
        exclude_if=lambda is_of_pipeline: not is_of_pipeline,
        description="whether a gate in a pipeline asked: processor time decides where it is known; left out: no",
    )
    margin: float = Field(description="what is called equal, as a fraction")
    margins: dict[str, float] = Field(
        default_factory=dict,
        exclude_if=lambda margins: not margins,
        description="the same of further metrics, by their own A/A pairs on the nodes; left out: the usual ones",
    )
    noise: float = Field(description="standard deviation of a pair that was reckoned with, as a fraction")
    is_noise_assumed: bool = Field(default=True, description="whether that noise was assumed, and not measured")
    minutes: float = Field(description="what it should take")
    runner_timeout_s: float = Field(description="seconds that one process may take")
    block_timeout_s: float = Field(description="seconds that the block may take")
    # both are None in plans from before 22 November 2026
    once_s: float | None = Field(default=None, description="seconds that checks and first traces should take")
    round_s: float | None = Field(default=None, description="seconds that a round should take")
    is_tracing_rounds: bool = Field(
        default=False, description="whether each launch also traces a few inferences, so that operators get verdicts"
    )
    sustained_s: float = Field(default=0.0, description="seconds that each cell works on for once the rounds are over")
    tolerances: dict[str, Tolerance] = Field(default_factory=dict, description="of single outputs, by name")
    wish: Wish | None = Field(default=None, description="what a change that was wished for costs")

    def max_duration_s(self, rounds: int) -> float | None:
        """Return the seconds that checks, first traces and `rounds` rounds may take at most, without `sustained_s`.

        Where disturbed rounds are not replaced, this is the block's whole timeout. It is None for plans that are too
        old.
        """
        if not self.is_replacing:
            return self.block_timeout_s
        if self.once_s is None or self.round_s is None:
            return None
        return PROMISE_FACTOR * (self.once_s + rounds * self.round_s)


def max_rounds_to_order(max_rounds: int) -> int:
    """Return how many rounds a node may measure at most: `max_rounds`, and replacements of disturbed pairs.

    Replacements are half as many at most, and lead to no more than MAX_ORDERED_ROUNDS. A larger `max_rounds` stays.
    """
    return max(max_rounds, min(MAX_ORDERED_ROUNDS, max_rounds + int(MAX_REPLACED_SHARE * max_rounds)))


class RefusedPoint(Message):
    """A point that will not run, as a cell, and why."""

    id: str = Field(description="unique in the plan")
    positions: dict[str, int] = Field(description="the positions of its values on the axes of the matrix")
    labels: dict[str, str] = Field(default_factory=dict, description="its values in words, by axis")
    spec: CellSpec = Field(description="what would have been measured")
    reason: Reason = Field(description="why it will not")
    way_out: WayOut | None = Field(default=None, description="what to change; null: nothing is known to help")


class Plan(Message):
    """The whole plan of a matrix."""

    # how many different points will be measured
    cells: int = 0
    budget: Budget
    fail_fast: bool = False
    max_parallel: int | None = None
    blocks: tuple[PlannedBlock, ...] = ()
    refused: tuple[RefusedPoint, ...] = ()
    excluded: int = 0
    # the minutes of all blocks one after another, on a single node
    minutes: float = 0.0
    # why the matrix as a whole must be a mistake, in one sentence; nothing should be started then
    problem: str | None = None


def positions_by_id(blocks: Iterable[PlannedBlock], refused: Iterable[RefusedPoint]) -> dict[str, Mapping[str, int]]:
    measured: dict[str, Mapping[str, int]] = {arm.id: arm.positions for block in blocks for arm in block.arms}
    return measured | {point.id: point.positions for point in refused}
