"""A report to file from what this machine measured: the same files as a farm's, see farm.rules.changes.report."""

import zipfile
from pathlib import Path

from farm.contract.blocks import ArmOrder
from farm.contract.document import Document
from farm.rules.changes import report
from farm.rules.changes.report import Case
from farm.rules.comparing.sides import compared
from farm.rules.planning.plans import Plan
from farm.rules.presenting import sentences
from onnxfarm.here.workbench import Workbench
from onnxfarm.problems import Infrastructure, Usage


def write_report(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], path: Path, since: str = ""
) -> None:
    """Write the report of two cells of a document, named as (baseline, candidate). Raises Usage, Infrastructure."""
    case, order = _case(bench, plan, document, sides=sides, since=since)
    files = bench.template.files.paths
    try:
        with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
            for name, text in report.texts_of(case).items():
                archive.writestr(name, text)
            for file in order.bundle.files:
                archive.write(files[file.sha256], f"{report.MODEL_FOLDER}/{file.name}")
            archive.write(files[order.inputs.sha256], report.INPUTS)
    except OSError as problem:
        raise Usage(f"{path} cannot be written ({problem.strerror}): give the path of a .zip.") from problem


def _case(
    bench: Workbench, plan: Plan, document: Document, *, sides: tuple[str, str], since: str
) -> tuple[Case, ArmOrder]:
    cells = {cell.id: cell for cell in document.cells}
    for block in plan.blocks:
        numbers = {arm.id: arm.arm for arm in block.arms}
        wanted = numbers.get(sides[1], numbers.get(sides[0]))
        order, _ = bench.template.preparation.order(block, seed=bench.template.seed)
        mine = [arm for arm in order.arms if arm.arm == wanted] if order is not None else []
        if mine:
            old, new = (cells[name] for name in sides)
            found = compared(document, *sides)
            said = sentences.comparison_sentence(found, cells).partition(": ")[2] if found is not None else ""
            sentence = said or sentences.cell_sentence(new)
            case = Case(document, old, new, mine[0].cell, mine[0].bundle.main, sentence, since)
            return case, mine[0]
    raise Infrastructure(f"Neither {sides[0]} nor {sides[1]} was measured, so that there is nothing to report.")
