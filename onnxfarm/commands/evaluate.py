"""`onnxfarm evaluate MODEL --data FILE`: judges a model and its variants on labelled data, on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from farm.contract.document import Document
from farm.contract.document_cells import Cell
from farm.contract.reasons import CellStatus
from farm.rules.cells.axes import BY_NAME
from farm.rules.presenting.lines import is_less_accurate
from farm.rules.quality import accuracy_metrics
from farm.rules.wording.vocabulary import with_mark
from onnxfarm.calibration_files import CALIBRATION_HELP
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import read_matrix
from onnxfarm.exit_codes import judge_cells_here
from onnxfarm.here.home import default_home
from onnxfarm.outputs import make_console, make_table, write_document
from onnxfarm.problems import GateFailed, Stopped, exit_with_problem, require_extra
from onnxfarm.subject import Subject

LATEST = "1.31.1"


@exit_with_problem()
def evaluate(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    data: Annotated[Path, typer.Option(metavar="NPZ", help="Labelled data: inputs by name and `labels`.")],
    recipe: options.RecipeOption = "",
    judge: options.JudgeOption = "",
    ort: Annotated[str, typer.Option(help="Runtimes, e.g. 1.29.0,1.31.1.")] = LATEST,
    provider: Annotated[str, typer.Option(help="Execution providers, e.g. cpu,openvino.")] = "cpu",
    precision: Annotated[str, typer.Option(help="fp32, fp16, int8-dynamic, int8-qdq:per-channel, int4, …")] = "fp32",
    calibration: Annotated[Path | None, typer.Option(metavar="DATA", help=CALIBRATION_HELP)] = None,
    json_file: options.DocumentOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 when a cell is worse than FP32, or has none.")
    ] = False,
    home: options.HomeOption = None,
) -> None:
    """Judge a model and its variants on labelled data, sample by sample against FP32. Nothing is timed.

    Exit code 0: every cell is judged or was refused; 1: one failed or none could be judged, and with --strict one lost
    accuracy or has none; 2: something given cannot be used.
    """
    with require_extra("node"):
        from onnxfarm.here import workbench
        from worker.agent.measurement.evaluation import evaluate_block
    judging = options.parse_judging(recipe, judge, data)
    axes = {"runtime": ort, "provider": provider, "precision": precision, "threads": "1"}
    declared = read_matrix(None, axes)
    console = make_console(stderr=True)
    place = home or default_home()
    with workbench.open_workbench(Subject(model), home=place, console=console) as bench:
        if calibration is not None:
            bench.set_calibration(calibration)
        bench.set_evaluation(data, judging)
        bench.measurer.execute = evaluate_block
        document = _make_judged_document(bench.measurer.measure(bench.plan(declared)))
        if bench.measurer.is_cancelled():
            raise Stopped("Stopped before the end.")
    _write_and_show(document, console=console, json_file=json_file)
    _judge_document(document, strict=strict)


def _make_judged_document(document: Document) -> Document:
    """Return the document without A/A twins and comparisons; each cell has the status of its accuracy."""
    cells = [_set_status_by_accuracy(cell) for cell in document.cells if cell.twin_of is None]
    judged_count = sum(cell.status == CellStatus.DONE for cell in cells)
    sentence = f"{judged_count} of {len(cells)} cells were judged on labelled data."
    return document.model_copy(update={"cells": cells, "comparisons": [], "sentence": sentence})


def _set_status_by_accuracy(cell: Cell) -> Cell:
    accuracy = cell.accuracy
    if accuracy is None:
        return cell
    status = CellStatus.DONE if accuracy.reason is None else accuracy.reason.status
    return cell.model_copy(update={"status": status, "reason": accuracy.reason})


def _write_and_show(document: Document, *, console: Console, json_file: Path | None) -> None:
    write_document(document, json_file)
    console.print(Text(f"\n{document.sentence}\n", style="bold"))
    figures = ("bytes", "accuracy", "interval", "against upload")
    columns = (Column(head, justify="right", no_wrap=True) for head in figures)
    table = make_table(*map(Column, ("cell", "runtime", "provider", "variant")), *columns)
    for cell in document.cells:
        provider = cell.provider.removesuffix("ExecutionProvider")
        variant = cell.recipe or BY_NAME["precision"].label(cell)
        table.add_row(cell.id, str(cell.runtime), provider, variant, *_format_figures(cell))
    console.print(table)
    for cell in document.cells:
        if cell.reason is not None:
            console.print(Text(f"{with_mark(cell.status)} {cell.id}: {cell.reason.text}"), soft_wrap=True)


def _format_figures(cell: Cell) -> list[str | Text]:
    accuracy = cell.accuracy
    size = "" if cell.model_bytes is None else f"{cell.model_bytes:,}"
    if accuracy is None or accuracy.value is None:
        return [size, "not measured", "", ""]
    entry = accuracy_metrics.metric_of(accuracy)
    style = "bold yellow" if is_less_accurate(accuracy) else ""
    interval = entry.format_interval(accuracy.ci_low, accuracy.ci_high)
    return [size, entry.format_value(accuracy.value), interval, Text(entry.format_difference(accuracy), style=style)]


def _judge_document(document: Document, *, strict: bool) -> None:
    """Judge the cells as those of a bench. With `strict`, GateFailed is also raised if a cell lost accuracy."""
    unjudged = [cell.id for cell in document.cells if cell.status != CellStatus.DONE]
    worse = [cell.id for cell in document.cells if cell.accuracy is not None and is_less_accurate(cell.accuracy)]
    if strict and worse:
        also = f" and {', '.join(unjudged)} had none" if unjudged else ""
        raise GateFailed(f"{', '.join(worse)} lost accuracy{also} (--strict).")
    judge_cells_here(document, strict=strict)
