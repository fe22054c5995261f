"""What a bench document is made from: a run as planned, and the reports that came in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farm.contract.cells import Budget, CellSpec
from farm.contract.reasons import Reason
from farm.contract.reports import Report
from farm.rules.planning.plans import PlannedBlock, RefusedPoint
from farm.rules.quality.parity import Preset
from farm.rules.runtimes.models import ModelFacts


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """A block with the reports of its valid attempts, the oldest first.

    `node` is the name of the node. `reason` says why the block failed or was stopped. `is_over` says that no report
    will follow.
    """

    block: PlannedBlock
    reports: Sequence[Report] = ()
    node: str | None = None
    reason: Reason | None = None
    is_over: bool = True


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything a document is made from.

    `machine` has facts about the machine that measured, or about the farm's nodes by name. `references` and `sizes` are
    keyed by the digest of a cell: what its outputs were compared with, and the size of its model files in bytes.
    `preset` replaces the tolerances that follow from the precision.
    """

    model: ModelFacts
    # other models that were measured in the same blocks
    other_models: Sequence[ModelFacts] = ()
    blocks: Sequence[BlockRecord] = ()
    refused: Sequence[RefusedPoint] = ()
    machine: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    budget: Budget = Budget.QUICK
    references: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    preset: Preset | None = None
    created_at: str | None = None
    command: str | None = None
    run: str | None = None
    url: str | None = None

    def model_of(self, spec: CellSpec) -> ModelFacts:
        """Return the model that a cell runs: the main one, unless another one's file is the cell's."""
        return next((model for model in self.other_models if model.bundle_sha256 == spec.artifact_sha256), self.model)
