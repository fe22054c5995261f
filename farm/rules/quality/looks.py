"""The interface between the agent and the workshop in the search for the first divergent node.

The agent runs the candidate. The workshop runs the confined processes that cut a model into parts. Neither imports the
other: the code that starts a search passes the workshop's function to the agent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from farm.contract.reports import OutputParity
from farm.rules.quality.divergence import GraphNode
from farm.rules.quality.parity import FP32, Preset, judge


class CandidateError(Exception):
    """The candidate could not run a model. This ends the search only where that is the whole model."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One question to the candidate: run the model of `folder` on `inputs` and compare its outputs with `reference`."""

    folder: Path
    main: str
    inputs: Path
    reference: Path


# runs the candidate and compares its outputs
Compare = Callable[[Look], Sequence[OutputParity]]
# computes the outputs of the reference, and writes them to the `reference` of a look
Refer = Callable[[Look], None]


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Candidate and reference: how both are run, and by which preset they are judged.

    Without `refer` the reference is the CPU without optimisations. The search, and not this class, calls `check` before
    each of its steps; it may raise to end the search.
    """

    compare: Compare
    refer: Refer | None = None
    preset: Preset = FP32
    check: Callable[[], None] = lambda: None

    def find_failing_outputs(self, look: Look, *, are_intermediate: bool = True) -> list[OutputParity]:
        """Run the candidate and return the outputs that fail the preset.

        For intermediate tensors the agreement on the largest value is not judged, since it matters only for the outputs
        of a whole model.
        """
        is_relaxed = are_intermediate and self.preset.min_agreement
        preset = replace(self.preset, min_agreement=0.0) if is_relaxed else self.preset
        return [output for output in self.compare(look) if judge((output,), preset).verdict == "fail"]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where candidate and reference diverge."""

    # the first tensor that differs, and the node that makes it
    tensor: str
    node: GraphNode
    # the names of the nodes of the smallest part of the model that still shows it
    part: tuple[str, ...]
    # where that part is written, with its inputs and the reference of its output
    folder: Path
    main: str
    inputs: Path
    reference: Path
    # the parities of the whole model's output, of the tensor, and of the part's output; the last is None if no part
    # that was tried shows the difference
    parity: OutputParity
    tensor_parity: OutputParity
    part_parity: OutputParity | None
    # (tensor, whether it agreed) of each comparison, in order
    looks: tuple[tuple[str, bool], ...]

    def sentence(self) -> str:
        """Say which tensor is the first beyond tolerance, which node makes it, and which nodes alone show it."""
        node = self.node.name or self.tensor
        text = f"The first tensor beyond tolerance is {self.tensor}, made by {node} ({self.node.op_type})"
        if self.part_parity is None:
            return f"{text}; no smaller part of the model shows it alone."
        if len(self.part) == 1:
            return f"{text}; that node alone shows it."
        return f"{text}; {len(self.part)} nodes together show it: {', '.join(self.part)}."


class Search(Protocol):
    """Finds where two sides diverge, as `farm.workshop.divergence.find_first_divergence` does."""

    def __call__(
        self,
        bundle_dir: Path,
        main: str,
        *,
        inputs: Path,
        work_dir: Path,
        sides: Sides,
        variant_dir: Path | None = None,
    ) -> Divergence | None:
        """Return where the sides diverge; None if the candidate's outputs agree.

        Raises ReasonedError, CandidateError, and any exception of the sides.
        """
