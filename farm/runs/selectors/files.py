"""Finds files for people and nodes: files of a block, raw traces and compiled models; writes CSV and Parquet.

`name_compiled_model` makes the file name under which people download the model that was compiled for a cell.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from pathlib import Path

from django.db.models import Q, QuerySet

from farm.accounts.models import Team
from farm.accounts.selectors import Anyone
from farm.base.refusals import Gone, Missing, Unprocessable, require_row
from farm.contract import document_cells as doc_cells
from farm.fleet.models import Node
from farm.registry import storage
from farm.registry.models import ArtifactFile, Blob, EvaluationData, Preparation
from farm.registry.selectors import model_facts
from farm.registry.states import BUNDLE_ROLES
from farm.rules.judging.evidence import Evidence
from farm.rules.reporting import timings
from farm.rules.runtimes import providers
from farm.runs.models import Arm, Attempt, Block, Cell, CompiledModel, Run, Trace, match_arms
from farm.runs.selectors.evidence import COUNTED, counted_reports
from farm.runs.selectors.retention import explain_removed_compiled_models, explain_removed_timings
from farm.runs.states import AttemptState

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
MEDIA_TYPE = "application/vnd.apache.parquet"


def find_leased_file(block: Block, sha256: str) -> Path:
    """Return the path of a stored file that the block needs; a file that only the bucket has is downloaded first.

    Raises Missing if it needs none with this sha256, or the store has lost it, and Away if the bucket does not answer.
    """
    team = block.run.team_id
    if Blob.objects.filter(team=team, sha256=sha256).filter(_filter_needed(block)).exists():
        path = storage.fetch_blob(team_id=team, sha256=sha256)
        if path.is_file():
            return path
    raise Missing(f"Block {block.pk} needs no file {sha256[:12]}….")


def find_team_asking_for(runtime: str, *, node: Node) -> Team | None:
    """Find the team of a block that this node holds now and that names the runtime, as `distribution==version`.

    None if the node holds no such block.
    """
    leased = Attempt.objects.filter(node=node, state=AttemptState.LEASED, block__arms__cell__runtime=runtime)
    first = leased.select_related("block__run__team").defer("block__run__matrix").first()
    return None if first is None else first.block.run.team


def _filter_needed(block: Block) -> Q:
    """Make the filter for the blobs that a block needs, from bundles to labelled data."""
    cells = Cell.objects.filter(arms__block=block)
    versions = block.run.versions
    uploads = [version.artifact for version in versions]
    derived = Q(artifact__in=cells.values("variant__derived_id")) | Q(artifact__in=uploads)
    bundles = ArtifactFile.objects.filter(derived, role__in=BUNDLE_ROLES)
    labelled = EvaluationData.objects.filter(version__in=versions).exclude(data=None)
    prepared = Preparation.objects.filter(pk__in=cells.values("preparation_id"))
    return (
        Q(pk__in=bundles.values("blob_id"))
        | Q(pk__in=prepared.exclude(inputs=None).values("inputs_id"))
        | Q(pk__in=prepared.exclude(reference=None).values("reference_id"))
        | Q(pk__in=labelled.values("data_id"))
        | Q(pk__in=[artifact.prompts_id for artifact in uploads if artifact.prompts_id])
    )


def traces_of(run: Run, name: str) -> QuerySet[Trace]:
    """Return the raw traces of a cell of the run, from attempts that count, in the order of trace rounds.

    Of the same trace round, the newest comes first. Empty if the cell was never in a block.
    """
    arm = Arm.objects.filter(match_arms(run, name)).first()
    if arm is None:
        return Trace.objects.none()
    rows = Trace.objects.filter(attempt__block=arm.block_id, arm=arm.number, attempt__state__in=COUNTED)
    return rows.order_by("trace_round", "-pk")


def trace(user: Anyone, trace_id: int) -> Trace:
    """Return a trace by its id. Raises Missing if there is none that the user may see."""
    visible = Trace.objects.filter(attempt__block__run__in=Run.objects.visible_to(user), pk=trace_id)
    return require_row(
        visible.select_related("attempt__block__run"), f"There is no trace {trace_id} that you can access."
    )


def compiled_model(run: Run, name: str) -> CompiledModel | None:
    """Find the newest model that a provider compiled for this cell; None if there is none."""
    arm = Arm.objects.filter(match_arms(run, name)).first()
    if arm is None:
        return None
    rows = CompiledModel.objects.filter(attempt__block=arm.block_id, arm=arm.number, attempt__state__in=COUNTED)
    return rows.select_related("blob").order_by("-pk").first()


def explain_removed_compiled(run: Run, name: str) -> str:
    """Say that retention removed the cell's compiled model; empty if it did not, or nothing was compiled."""
    sentence = explain_removed_compiled_models(run)
    if not sentence or compiled_model(run, name) is not None:
        return ""
    # nodes compile a model once for a cell and its twin, and they compile no program
    arm = Arm.objects.select_related("cell").filter(match_arms(run, name), twin_of=None).first()
    entry = providers.find(arm.cell.spec.provider) if arm is not None else None
    if arm is None or entry is None or not entry.leaves_context or arm.cell.spec.recipe.is_program:
        return ""
    # a model that was uploaded compiled is measured as it is
    return "" if model_facts(run.version).compiled else sentence


def name_compiled_model(cell: doc_cells.Cell) -> str:
    parts = [cell.model or "model", cell.uploaded or cell.precision, providers.provider_of(cell.provider).short, "ctx"]
    return _UNSAFE.sub("-", "-".join(part for part in parts if part))[:120] + ".onnx"


def make_parquet(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Write rows as a Parquet file with a column for each name of the first row; empty texts become nulls.

    Raises Unprocessable if pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unprocessable(
            "Parquet is not available: pyarrow is not installed on the farm's server.",
            code="no_pyarrow",
            hint="An administrator can install it: pip install 'onnxfarm[parquet]'. CSV and JSON have the same rows.",
        ) from None
    table = pyarrow.Table.from_pylist([{name: _simplify(value) for name, value in row.items()} for row in rows])
    target = io.BytesIO()
    pyarrow.parquet.write_table(table, target)
    return target.getvalue()


def _simplify(value: object) -> object:
    """Keep numbers, texts and times; turn an empty text into None, and any other value into text."""
    if value is None or value == "":
        return None
    if isinstance(value, Enum):
        return str(value.value)
    return value if isinstance(value, bool | int | float | str | datetime) else str(value)


def timing_lines(run: Run, name: str) -> Iterator[str]:
    """Return an iterator over every timing of a cell as lines of CSV.

    The call itself raises Missing for a cell that was never in a block, and Gone if retention removed the timings.
    """
    if sentence := explain_removed_timings(run):
        raise Gone(sentence, code="retention")
    arm = Arm.objects.filter(match_arms(run, name)).select_related("block").first()
    if arm is None:
        raise Missing(f"Run {run.pk} has no measured cell {name!r}.", hint="Its cells are listed by its results.")
    return timings.format_csv_lines(Evidence.of(counted_reports(arm.block)), arm.number)
