"""Models that a provider compiled on a node, as people find them."""

import re

from farm.contract.document_cells import Cell
from farm.rules.runtimes import providers
from farm.runs.models import Arm, CompiledModel, Run, named
from farm.runs.selectors.evidence import COUNTED

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def compiled_model(run: Run, name: str) -> CompiledModel | None:
    """The newest one of this cell of the run, of the attempts that count."""
    arm = Arm.objects.filter(named(run, name)).first()
    if arm is None:
        return None
    rows = CompiledModel.objects.filter(attempt__block=arm.block_id, arm=arm.number, attempt__state__in=COUNTED)
    return rows.select_related("blob").order_by("-pk").first()


def compiled_name(cell: Cell) -> str:
    """The name of its file: the model's, its precision and the provider's, as file systems and uploads take it."""
    parts = [cell.model or "model", cell.precision, providers.of(cell.provider).short, "ctx"]
    return _ODD.sub("-", "-".join(part for part in parts if part))[:120] + ".onnx"
