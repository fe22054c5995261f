"""`onnxfarm sweep MODEL --ort all`: measures a model on many releases, each in a block with a pinned reference.

The JSON document, `onnxfarm.sweep/1`, holds a line for each cell and provider: every release as a ratio to the
reference with its 95 % interval, and the change points between neighbours.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from farm.contract.cells import Runtime
from farm.rules.matrices.points import explain_unpairable
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.runtimes.providers import EVERY_DISTRIBUTION
from farm.rules.runtimes.ranges import ALL, RangeProblem, parse_versions
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import read_matrix
from onnxfarm.commands.feed_options import parse_sizes
from onnxfarm.here.home import default_home
from onnxfarm.here.release_index import list_releases
from onnxfarm.outputs import make_console, print_lines, write_json, write_text
from onnxfarm.problems import Usage, exit_with_problem, require_extra
from onnxfarm.subject import Subject


@exit_with_problem()
def sweep(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    ort: Annotated[str, typer.Option(help="Releases: all, 1.15..1.31, or 1.20.1,1.29.0.")] = ALL,
    reference: Annotated[
        str, typer.Option(help="The reference release, measured in every block.", show_default="the newest")
    ] = "",
    distribution: Annotated[str, typer.Option(help="Whose releases they are.")] = DEFAULT_DISTRIBUTION,
    provider: Annotated[str, typer.Option(help="Execution providers, e.g. cpu; a line each.")] = "cpu",
    batch: Annotated[
        str | None,
        typer.Option(help="Batch sizes, e.g. 1; a line each.", show_default="that of the inputs or the model, else 1"),
    ] = None,
    shape: options.ShapeOption = None,
    threads: options.ThreadsOption = None,
    precision: Annotated[
        str | None, typer.Option(help="fp32, fp16, int8-dynamic, int4, …; a line each.", show_default="fp32")
    ] = None,
    scenario: options.ScenarioOption = None,
    budget: options.BudgetOption = None,
    inputs: options.InputsOption = None,
    seed: options.SeedOption = 0,
    json_file: options.DocumentOption = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a self-contained HTML page with a chart.")
    ] = None,
    home: options.HomeOption = None,
) -> None:
    """Measure one model over all releases, and mark where it became slower or faster."""
    if html is not None:
        # fail before anything is measured
        with require_extra("server"):
            import plotly  # noqa: F401
    place = home or default_home()
    versions, pinned = _choose_releases(distribution, ort, reference, home=place)
    axes = {"batch": batch, "shapes": parse_sizes(shape), "threads": threads, "precision": precision, "budget": budget}
    declared = read_matrix(None, {**axes, "provider": provider, "scenario": scenario})
    if (sentence := explain_unpairable(declared)) is not None:
        raise Usage(sentence)
    with require_extra("node"):
        from onnxfarm.here import sweep as sweep_run
        from onnxfarm.here import workbench
    console = make_console(stderr=True)
    releases = [Runtime(distribution=distribution, version=version) for version in {*versions, pinned}]
    subject = Subject(model, inputs, seed=seed)
    with workbench.open_workbench(subject, home=place, console=console, releases=releases) as bench:
        swept = sweep_run.measure_sweep(bench, declared, distribution, versions=versions, reference=pinned)
    write_json(swept, json_file)
    if html is not None:
        write_text(sweep_run.render_page(swept), html)
    show(swept, console=console)


def _choose_releases(distribution: str, ort: str, reference: str, *, home: Path) -> tuple[list[str], str]:
    """Return the releases to measure, in order, and the reference, by default the newest of them. Raises Usage."""
    if distribution not in EVERY_DISTRIBUTION:
        raise Usage(f"--distribution: {choice_sentence('distribution', distribution, EVERY_DISTRIBUTION)}")
    published = list_releases(distribution, home=home)
    try:
        versions = parse_versions(ort, published)
        (pinned,) = parse_versions(reference, published) if reference else versions[-1:]
    except RangeProblem as problem:
        raise Usage(str(problem)) from problem
    except ValueError as problem:
        raise Usage(f"--reference {reference!r} names several releases: pin one.") from problem
    return versions, pinned


def show(swept: Mapping[str, Any], *, console: Console) -> None:
    """Print a document `onnxfarm.sweep/1` for people: for each line a sentence, and what explains its changes.

    Changes without an explanation are left out. Last comes how long the sweep took.
    """
    for line in swept["lines"]:
        changes = [f"  {point['after']}: {point['explanation']}" for point in line["turns"] if point["explanation"]]
        print_lines("", str(line["sentence"]), *changes, console=console)
    console.print(f"\nIt took {swept['minutes']:.1f} minutes.", highlight=False)
