"""`onnxfarm bench MODEL`: the farm's blocks, rounds and verdicts on this machine, without any server."""

import os
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from farm.contract.document import Document
from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix as matrices
from onnxfarm.bench_options import matrix_of, sizes_of, tolerances_of, with_settings
from onnxfarm.calibration import CALIBRATION_HELP
from onnxfarm.problems import GateFailed, Infrastructure, Usage, main_guard, needs_extra

HOME_VARIABLE = "ONNXFARM_HOME"
# columns of the tables where there is no terminal to ask
PLAIN_WIDTH = 160


class Beside(NamedTuple):
    """Files given beside the model; `recipe` says how outputs are judged on the labelled data of `evaluation`."""

    inputs: Path | None
    expected: Path | None
    calibration: Path | None
    evaluation: Path | None
    recipe: str


@main_guard()
def bench(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")],
    ort: Annotated[
        str | None, typer.Option(help="Runtimes, e.g. 1.29.0,1.31.1 or onnxruntime-openvino==1.24.1.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Execution providers, e.g. cpu,openvino.")] = None,
    batch: Annotated[str | None, typer.Option(help="Batch sizes, e.g. 1,8.")] = None,
    shape: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help="A dynamic dimension; repeat.")] = None,
    threads: Annotated[str | None, typer.Option(help="Intra-op threads, e.g. 1,2.")] = None,
    precision: Annotated[
        str | None, typer.Option(help="Like fp32,fp16,int8-dynamic,int8-qdq:per-channel:exclude-nodes=a+b.")
    ] = None,
    opset: Annotated[str | None, typer.Option(help="as-is, max-of-runtime, or a number.")] = None,
    optimization: Annotated[str | None, typer.Option(help="disable, basic, extended, all.")] = None,
    concurrency: Annotated[str | None, typer.Option(help="Sessions at once, e.g. 1,4.")] = None,
    budget: Annotated[str | None, typer.Option(help="quick, standard or precise.")] = None,
    sustained: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Then let each cell work on for so long; at most 30.")
    ] = None,
    tolerance: Annotated[
        list[str] | None, typer.Option(metavar="NAME=ATOL[,RTOL]", help="Judge an output by its own; repeat.")
    ] = None,
    matrix: Annotated[
        str | None, typer.Option(metavar="FILE", help="A matrix file, - for stdin, or JSON text.")
    ] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="NPZ", help="Inputs by name; default: seeded ones.")] = None,
    expected: Annotated[Path | None, typer.Option(metavar="NPZ", help="Outputs that the inputs should give.")] = None,
    calibration: Annotated[Path | None, typer.Option(metavar="NPZ|DIR", help=CALIBRATION_HELP)] = None,
    evaluation: Annotated[
        Path | None, typer.Option(metavar="NPZ", help="Labelled data: inputs by name and `labels`.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="How outputs are judged on them: top1 (default), top5, mse, softmax+mse, …@OUTPUT.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of inputs and of the order of rounds.")] = 0,
    diverge: Annotated[
        bool, typer.Option("--diverge", help="Where outputs changed between runtimes, name the first divergent node.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when a cell was refused or failed.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the document; - is stdout.")
    ] = None,
    timings: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write every timing there, a CSV file a cell.")
    ] = None,
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="Where runtimes are kept.")] = None,
) -> None:
    """Measure a model here, cells side by side in interleaved rounds, and judge them as a farm does.

    Exit code 0: it ran, whatever the verdicts; 1: a cell did not, with --strict; 2: something given cannot be used.
    """
    axes = {
        **{"runtime": ort, "provider": provider, "batch": batch, "shapes": sizes_of(shape), "threads": threads},
        **{"precision": precision, "opset": opset, "optimization": optimization, "concurrency": concurrency},
        "budget": budget,
    }
    declared = with_settings(matrix_of(matrix, axes), sustained=sustained, tolerance=tolerances_of(tolerance))
    if recipe and evaluation is None:
        raise Usage("--recipe says how labelled data are judged: add them with --evaluation.")
    console = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH)
    place = home or default_home()
    document = _run(
        model,
        declared,
        beside=Beside(inputs, expected, calibration, evaluation, recipe or "top1"),
        seed=seed,
        home=place,
        timings_dir=_folder(timings),
        console=console,
    )
    if diverge:
        from onnxfarm.bench_diverge import with_nodes

        document = with_nodes(document, model=model, inputs=inputs, home=place, console=console)
    _show(document, console=console, json_file=json_file)
    _judge(document, strict=strict)


def _run(
    model: Path,
    declared: matrices.Matrix,
    *,
    beside: Beside,
    seed: int,
    home: Path,
    timings_dir: Path | None,
    console: Console,
) -> Document:
    with needs_extra("node"):
        from onnxfarm import workbench
    with workbench.opened(
        model, home=home, console=console, inputs=beside.inputs, expected=beside.expected, seed=seed
    ) as bench:
        bench.template.timings_dir = timings_dir
        if beside.calibration is not None:
            bench.calibrate(beside.calibration)
        if beside.evaluation is not None:
            bench.label(beside.evaluation, beside.recipe)
        # stopped by Ctrl-C, what was measured is kept
        return bench.template.measure(bench.plan(declared))


def _folder(wanted: Path | None) -> Path | None:
    """The folder, made when it is missing. Raises Usage before anything is measured."""
    if wanted is None:
        return None
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Usage(f"--timings {wanted} is no folder ({problem.strerror}): give another one.") from problem
    return wanted.resolve()


def default_home() -> Path:
    """Where the commands that measure without a farm keep their runtimes."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "onnxfarm"


def _show(document: Document, *, console: Console, json_file: Path | None) -> None:
    from onnxfarm.results import write_json
    from onnxfarm.screen import show

    if json_file is not None:
        write_json(document, json_file)
    show(document, console=console)


def _judge(document: Document, *, strict: bool) -> None:
    """Raise Infrastructure when no runtime could be installed, and with `strict` GateFailed for a cell not done."""
    missing = [cell for cell in document.cells if cell.status != "done"]
    reasons = {cell.reason.code for cell in missing if cell.reason}
    if len(missing) == len(document.cells) and reasons == {ReasonCode.RUNTIME_INSTALL_FAILED}:
        raise Infrastructure(
            "No runtime could be installed; the installer's words are above. Is a package index in reach?"
        )
    if strict and missing:
        raise GateFailed(f"{len(missing)} of {len(document.cells)} cells were refused or did not finish (--strict).")
