"""`onnxfarm diverge MODEL --ort CANDIDATE`: finds the first tensor of a model that a runtime computes differently."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column

from farm.contract.divergence import DivergenceDocument
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import read_matrix
from onnxfarm.commands.feed_options import parse_fills, parse_sizes
from onnxfarm.here.home import default_home
from onnxfarm.outputs import make_console, make_folder, make_table, print_lines, write_text
from onnxfarm.problems import GateFailed, exit_with_problem, require_extra

if TYPE_CHECKING:
    from onnxfarm.here.divergence import DivergenceRequest

AgainstOption = Annotated[
    str | None, typer.Option(help="Another runtime as the reference.", show_default="the CPU without optimisations")
]
BatchOption = Annotated[
    int | None, typer.Option(help="Batch size of inputs made from the seed.", show_default="the model's, else 1")
]
OutOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write the smallest part of the model that shows it there.")
]


@exit_with_problem()
def diverge(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    ort: Annotated[str, typer.Option(help="The runtime in question, e.g. 1.21.1 or onnxruntime-openvino==1.24.1.")],
    against: AgainstOption = None,
    provider: Annotated[str, typer.Option(help="Execution provider of --ort, e.g. cpu, openvino.")] = "cpu",
    level: Annotated[str, typer.Option(help="Optimisations of --ort: disable, basic, extended, all.")] = "all",
    precision: Annotated[str, typer.Option(help="A variant against the FP32 original: fp16, …")] = "fp32",
    inputs: options.InputsOption = None,
    batch: BatchOption = None,
    shape: options.ShapeOption = None,
    input_: options.InputOption = None,
    seed: Annotated[int, typer.Option(help="Seed of inputs.")] = 0,
    threads: Annotated[int, typer.Option(help="Intra-op threads.")] = 1,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance.", show_default="the precision's")] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance.", show_default="the precision's")] = None,
    out: OutOption = None,
    json_file: options.DocumentOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when an output differs.")] = False,
    home: options.HomeOption = None,
) -> None:
    """Find the first tensor beyond tolerance, its node, and the smallest part of the model that shows it.

    Exit code 0: it was looked for, whatever was found; 1: an output differs, with --strict; 2: something given cannot
    be used; 3: a runtime could not be installed or run.
    """
    with require_extra("node"):
        from onnxfarm.here.divergence import DivergenceRequest
    axes = {"runtime": ort, "provider": provider, "optimization": level, "precision": precision}
    request = DivergenceRequest(
        model=model,
        candidate=read_matrix(None, {**axes, "threads": str(threads)}),
        against=read_matrix(None, {"runtime": against, "threads": str(threads)}) if against is not None else None,
        inputs=inputs,
        batch=batch,
        shapes=(parse_sizes(shape) or [{}])[0],
        fills=parse_fills(input_) or {},
        seed=seed,
        tolerances=(atol, rtol),
    )
    console = make_console(stderr=True)
    document = search_first_divergence(request, home=home or default_home(), out=out, console=console)
    if json_file is not None:
        write_text(document.to_json() + "\n", json_file)
    _show(document, out=out, console=console)
    if strict and document.output is not None:
        raise GateFailed(f"The output {document.output.name} differs from {document.reference} (--strict).")


def search_first_divergence(
    request: "DivergenceRequest", *, home: Path, out: Path | None, console: Console
) -> DivergenceDocument:
    """Find the first divergent tensor on this machine, and write the part of the model that shows it to `out`.

    `out` None: that part is not kept; else the folder is made if it is missing. `home`: the folder for runtimes and
    temporary files. Ctrl-C ends the search. Raises Usage and Infrastructure.
    """
    from onnxfarm.here import bench, divergence
    from onnxfarm.here.workbench import make_scratch_folder

    with make_scratch_folder(home, "diverge-") as folder, bench.catch_stop_signals() as is_cancelled:
        out_folder = make_folder(out or folder / "out", option="--out")
        return divergence.find_divergence(
            request,
            home=bench.Home(home.resolve()),
            scratch=folder,
            out=out_folder,
            say=lambda text: console.print(text, style="dim", highlight=False),
            is_cancelled=is_cancelled,
        )


def _show(document: DivergenceDocument, *, out: Path | None, console: Console) -> None:
    console.print(f"\n{document.sentence}\n", style="bold", highlight=False, markup=False)
    if document.found is None:
        return
    look, part = document.found.look, document.found.part
    if look is not None:
        figures = (Column(head, justify="right") for head in ("minimum", "maximum", "mean", "std", "NaN", "Inf"))
        table = make_table(document.found.tensor, *figures)
        for name, spread in ((str(document.candidate), look.candidate), (document.reference, look.reference)):
            if spread is not None:
                numbers = (spread.minimum, spread.maximum, spread.mean, spread.std)
                shown = ("" if number is None else f"{number:.6g}" for number in numbers)
                table.add_row(name, *shown, str(spread.nan_count), str(spread.inf_count))
        console.print(table)
        beyond = f"{look.violations:,} of {look.elements:,} values are beyond tolerance"
        furthest = look.furthest
        if furthest is not None:
            values = f"{furthest.candidate:g} where the reference has {furthest.reference:g}"
            beyond += f"; at {list(furthest.index)} {values}"
        console.print(beyond, highlight=False, markup=False)
    if out is not None:
        effect = "from there, it shows" if part.shows_it else "by itself, it does not show"
        console.print(
            f"Written to {out}: {', '.join(part.files)}. Run {effect} the difference.", highlight=False, markup=False
        )
        if part.command:
            print_lines(f"  {part.command}", console=console)
