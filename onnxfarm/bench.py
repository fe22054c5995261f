"""`onnxfarm bench MODEL`: the farm's blocks, rounds and verdicts on this machine, without any server."""

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from farm.contract.document import Document
from farm.contract.reasons import ReasonCode
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.matrix_text import MatrixProblem
from onnxfarm.documents import read_text
from onnxfarm.problems import GateFailed, Infrastructure, Usage, main_guard, needs_extra

HOME_VARIABLE = "ONNXFARM_HOME"
# columns of the tables where there is no terminal to ask
PLAIN_WIDTH = 160


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
    precision: Annotated[str | None, typer.Option(help="fp32, fp16, int8-dynamic, …")] = None,
    opset: Annotated[str | None, typer.Option(help="as-is, max-of-runtime, or a number.")] = None,
    optimization: Annotated[str | None, typer.Option(help="disable, basic, extended, all.")] = None,
    concurrency: Annotated[str | None, typer.Option(help="Sessions at once, e.g. 1,4.")] = None,
    budget: Annotated[str | None, typer.Option(help="quick, standard or precise.")] = None,
    matrix: Annotated[
        str | None, typer.Option(metavar="FILE", help="A matrix file, - for stdin, or JSON text.")
    ] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="NPZ", help="Inputs by name; default: seeded ones.")] = None,
    expected: Annotated[Path | None, typer.Option(metavar="NPZ", help="Outputs that the inputs should give.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of inputs and of the order of rounds.")] = 0,
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
        **{"runtime": ort, "provider": provider, "batch": batch, "shapes": _shapes(shape), "threads": threads},
        **{"precision": precision, "opset": opset, "optimization": optimization, "concurrency": concurrency},
        "budget": budget,
    }
    declared = _matrix(matrix, axes)
    if expected is not None and inputs is None:
        raise Usage("--expected says what certain inputs give: add them with --inputs.")
    console = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH)
    place = home or default_home()
    document = _run(
        model,
        declared,
        inputs=inputs,
        expected=expected,
        seed=seed,
        home=place,
        timings_dir=_folder(timings),
        console=console,
    )
    _show(document, console=console, json_file=json_file)
    _judge(document, strict=strict)


def _run(
    model: Path,
    declared: matrices.Matrix,
    *,
    inputs: Path | None,
    expected: Path | None,
    seed: int,
    home: Path,
    timings_dir: Path | None,
    console: Console,
) -> Document:
    with needs_extra("node"):
        from onnxfarm import bench_bundle, bench_given, bench_orders, bench_run
    try:
        home.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="bench-", dir=home)
    except OSError as problem:
        raise Infrastructure(
            f"{home} cannot be written ({problem.strerror}): give another folder with --home."
        ) from problem
    with scratch as name, bench_run.stopped_by_signals() as is_cancelled:
        folder = Path(name).resolve()
        files = bench_bundle.LocalFiles()
        uploaded = bench_bundle.take_in(model, folder=folder / "model", files=files)
        given = bench_given.take_given(uploaded, inputs=inputs, expected=expected, folder=folder, files=files)
        bench_given.refuse_contradiction(declared, given, model=uploaded)
        facts = uploaded.facts(inputs=given.inputs, inputs_batch=given.batch)
        preparation = bench_orders.Preparation(
            model=uploaded, files=files, given=given, folder=folder / "made", say=lambda text: None
        )
        run = bench_run.Run(
            home=bench_run.Home(home.resolve()),
            scratch=folder,
            files=files,
            matrix=declared,
            model=facts,
            preparation=preparation,
            console=console,
            seed=seed,
            command=shlex.join(["onnxfarm", *sys.argv[1:]]),
            is_cancelled=is_cancelled,
            timings_dir=timings_dir,
        )
        return run.measure(run.plan())


def _matrix(text: str | None, axes: dict[str, Any]) -> matrices.Matrix:
    """The matrix of the file with the axes of the options put over it. Raises Usage."""
    try:
        base = matrices.parse(_matrix_text(text)) if text is not None else None
        return matrices.from_options(base, **axes)
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def _matrix_text(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    return text if text.lstrip().startswith("{") else read_text(Path(text))


def _shapes(given: list[str] | None) -> list[dict[str, int]] | None:
    if not given:
        return None
    sizes: dict[str, int] = {}
    for one in given:
        name, sign, size = one.rpartition("=")
        if not sign or not name or not size.isdecimal():
            raise Usage(f"--shape {one!r} is not NAME=SIZE, like sequence=64.")
        sizes[name] = int(size)
    return [sizes]


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
