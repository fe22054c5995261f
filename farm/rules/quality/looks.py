"""What the agent and the workshop agree on for the search for the first divergent node.

The agent runs the candidate, the workshop the confined processes that cut a model open, and neither imports the other:
what starts a search hands it to the agent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from farm.contract.reports import OutputParity
from farm.rules.quality.divergence import GraphNode
from farm.rules.quality.parity import FP32, Preset, judge


class CandidateError(Exception):
    """The candidate could not run what it was given. This ends the search only where it concerns the whole model."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One question to the candidate: run the model of `folder` on `inputs` and compare its outputs with `reference`."""

    folder: Path
    main: str
    inputs: Path
    reference: Path


Compare = Callable[[Look], Sequence[OutputParity]]
# writes `reference` of a look, which is not there yet
Refer = Callable[[Look], None]


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Candidate and reference: how both are asked, and by what they are judged.

    Without `refer` the reference is the CPU without optimisations. `check` is called before each look and may raise to
    end the search.
    """

    compare: Compare
    refer: Refer | None = None
    preset: Preset = FP32
    check: Callable[[], None] = lambda: None

    def find_failing_outputs(self, look: Look, *, inside: bool = True) -> list[OutputParity]:
        """Compare one look and return the outputs that fail the preset.

        With `inside`, agreement on the largest value is not asked for, since it only matters for a model's own outputs.
        """
        preset = replace(self.preset, min_agreement=0.0) if inside and self.preset.min_agreement else self.preset
        return [output for output in self.compare(look) if judge((output,), preset).verdict == "fail"]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where candidate and reference diverge."""

    # the first tensor that differs, and the node that makes it
    tensor: str
    node: GraphNode
    # the nodes of the smallest cut of the model that still shows it
    part: tuple[str, ...]
    # where that cut is written, with its inputs and the reference of its output
    folder: Path
    main: str
    inputs: Path
    reference: Path
    # the candidate's on the whole model, of the tensor, and on the cut; None where no cut within reach shows the
    # difference
    parity: OutputParity
    tensor_parity: OutputParity
    part_parity: OutputParity | None
    # the tensors that were compared, each with whether it agreed
    looks: tuple[tuple[str, bool], ...]

    def sentence(self) -> str:
        """Say which tensor is the first beyond tolerance, which node makes it, and how few nodes show that alone."""
        node = self.node.name or self.tensor
        text = f"The first tensor beyond tolerance is {self.tensor}, made by {node} ({self.node.op_type})"
        if self.part_parity is None:
            return f"{text}; no smaller part of the model shows it alone."
        if len(self.part) == 1:
            return f"{text}; that node alone shows it."
        return f"{text}; {len(self.part)} nodes together show it: {', '.join(self.part)}."


class Search(Protocol):
    """Where the outputs of a model part; `farm.workshop.divergence.find_first_divergence` is the one there is."""

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
        """Return None when the candidate's outputs agree. Raises ReasonedError, CandidateError and whatever the sides
        raise."""
