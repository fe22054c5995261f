"""Models that a provider compiled on a node, as people find them."""

import re

from farm.contract.document_cells import Cell
from farm.registry.selectors import model_facts
from farm.rules.runtimes import providers
from farm.runs.models import Arm, CompiledModel, Run, named
from farm.runs.selectors.evidence import COUNTED
from farm.runs.selectors.retention import removed_compiled

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def compiled_model(run: Run, name: str) -> CompiledModel | None:
    """The newest one of this cell of the run, of the attempts that count."""
    arm = Arm.objects.filter(named(run, name)).first()
    if arm is None:
        return None
    rows = CompiledModel.objects.filter(attempt__block=arm.block_id, arm=arm.number, attempt__state__in=COUNTED)
    return rows.select_related("blob").order_by("-pk").first()


def gone_compiled(run: Run, name: str) -> str:
    """What is said in place of one that retention removed; empty for a cell of which nothing was compiled."""
    gone = removed_compiled(run)
    if not gone or compiled_model(run, name) is not None:
        return ""
    # nodes compile a model once for a cell and its twin, and no program
    arm = Arm.objects.select_related("cell").filter(named(run, name), twin_of=None).first()
    entry = providers.find(arm.cell.spec.provider) if arm is not None else None
    if arm is None or entry is None or not entry.leaves_context or arm.cell.spec.recipe.is_program:
        return ""
    # what comes compiled is measured as it is
    return "" if model_facts(run.version).compiled else gone


def compiled_name(cell: Cell) -> str:
    """The name of its file: the model's, its precision and the provider's, as file systems and uploads take it."""
    parts = [cell.model or "model", cell.precision, providers.of(cell.provider).short, "ctx"]
    return _ODD.sub("-", "-".join(part for part in parts if part))[:120] + ".onnx"
