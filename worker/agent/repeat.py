"""The command line that measures one cell again without a farm. Pure."""

import json
import shlex
from typing import Any

from farm.contract.blocks import ArmOrder
from farm.contract.cells import CellSpec, SessionSettings
from farm.rules import recipes
from farm.rules.matrices.axes import DEFAULT_DISTRIBUTION


def repeat_command(arm: ArmOrder) -> str:
    """`onnxfarm bench …` with every setting of the cell that is not bench's default."""
    cell = arm.cell
    words = ["onnxfarm", "bench", arm.source.main, "--ort", _runtime(cell), "--provider", cell.provider]
    words += _pairs(
        ("--batch", cell.workload.batch),
        ("--threads", cell.session.threads),
        ("--precision", cell.recipe.precision),
        ("--opset", cell.recipe.opset if cell.recipe.opset != "as-is" else None),
        ("--optimization", cell.session.optimization if cell.session.optimization != "all" else None),
        ("--concurrency", cell.workload.concurrency if cell.workload.concurrency > 1 else None),
        ("--seed", cell.workload.seed or None),
    )
    for name, size in sorted(cell.workload.shapes.items()):
        words += ["--shape", f"{name}={size}"]
    if cell.workload.inputs_sha256:
        words += ["--inputs", arm.inputs.name]
    declared = _matrix(cell)
    if declared:
        words += ["--matrix", json.dumps(declared, sort_keys=True)]
    return shlex.join(words)


def _runtime(cell: CellSpec) -> str:
    plain = cell.runtime.distribution == DEFAULT_DISTRIBUTION
    return cell.runtime.version if plain else str(cell.runtime)


def _pairs(*options: tuple[str, object]) -> list[str]:
    return [word for name, value in options if value is not None for word in (name, str(value))]


def _matrix(cell: CellSpec) -> dict[str, Any]:
    """What no option says: provider options, session options, options of the recipe."""
    declared: dict[str, Any] = {}
    if cell.provider_options:
        declared["provider"] = [{"name": cell.provider, "options": cell.provider_options}]
    options = recipes.for_tools(cell.recipe)
    if options:
        declared["precision"] = [{"precision": cell.recipe.precision, "options": options}]
    session = _session(cell.session)
    if session:
        declared["session"] = [{"name": "as-measured", **session}]
    return declared


def _session(settings: SessionSettings) -> dict[str, Any]:
    default = SessionSettings()
    own = ("execution_mode", "inter_op_threads", "spinning", "memory_pattern", "arena", "disabled_optimizers", "config")
    changed = {name: getattr(settings, name) for name in own if getattr(settings, name) != getattr(default, name)}
    return {name.replace("_", "-"): list(v) if isinstance(v, tuple) else v for name, v in changed.items()}
