"""Files that a node may read: those of the block it holds, and no others."""

from pathlib import Path

from django.db.models import Q

from farm.accounts.models import Team
from farm.base.refusals import Missing
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import ArtifactFile, Blob, EvaluationData, Preparation
from farm.registry.states import BUNDLE_ROLES
from farm.runs.models import Attempt, Block, Cell
from farm.runs.states import AttemptState


def leased_file(block: Block, sha256: str) -> Path:
    """Where the file with this digest lies, if the block needs it. Raises Missing."""
    team = block.run.team_id
    if Blob.objects.filter(team=team, sha256=sha256).filter(_needed(block)).exists():
        path = storage.fetched(team_id=team, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"Block {block.pk} needs no file {sha256[:12]}….")


def team_that_asks_for(runtime: str, *, node: Node) -> Team | None:
    """The team of a block that this node holds now and that names the runtime, as `distribution==version`."""
    held = Attempt.objects.filter(node=node, state=AttemptState.LEASED, block__arms__cell__runtime=runtime)
    first = held.select_related("block__run__team").defer("block__run__matrix").first()
    return None if first is None else first.block.run.team


def _needed(block: Block) -> Q:
    """Bundles of the variants and of the uploaded artifact, inputs and references, prompts, labelled data."""
    cells = Cell.objects.filter(arms__block=block)
    derived = Q(artifact__in=cells.values("variant__derived_id")) | Q(artifact=block.run.version.artifact_id)
    bundles = ArtifactFile.objects.filter(derived, role__in=BUNDLE_ROLES)
    labelled = EvaluationData.objects.filter(version=block.run.version_id).exclude(data=None)
    prepared = Preparation.objects.filter(pk__in=cells.values("preparation_id"))
    return (
        Q(pk__in=bundles.values("blob_id"))
        | Q(pk__in=prepared.exclude(inputs=None).values("inputs_id"))
        | Q(pk__in=prepared.exclude(reference=None).values("reference_id"))
        | Q(pk__in=labelled.values("data_id"))
        | Q(pk=block.run.version.artifact.prompts_id)
    )
