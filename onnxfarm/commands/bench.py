"""`onnxfarm bench MODEL`: measures a model on this machine, in blocks and with verdicts as on a farm."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from farm.rules.matrices.matrix import Matrix
from farm.rules.planning.plans import Plan
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import add_axis_options, apply_settings, parse_tolerances, read_matrix
from onnxfarm.commands.feed_options import parse_fills, parse_sizes, refuse_unused_prompts
from onnxfarm.exit_codes import judge_cells_here
from onnxfarm.here import release_index
from onnxfarm.here.home import default_home
from onnxfarm.outputs import STDOUT, make_console, make_folder, write_document
from onnxfarm.problems import Stopped, Usage, exit_with_problem, require_extra
from onnxfarm.screen import show
from onnxfarm.subject import Subject

if TYPE_CHECKING:
    from onnxfarm.here.workbench import Workbench

SustainedOption = Annotated[
    float | None,
    typer.Option(metavar="MINUTES", help="Then run each cell continuously for this many minutes; at most 30."),
]
MatrixOption = Annotated[str | None, typer.Option(metavar="FILE", help="A matrix file, - for stdin, or JSON text.")]
DivergeOption = Annotated[
    bool, typer.Option("--diverge", help="Where outputs changed between runtimes, name the first divergent node.")
]
TimingsOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write every timing to this folder, one CSV file per cell.")
]


@add_axis_options
@exit_with_problem()
def bench(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    ort: options.RuntimesOption = None,
    pre: options.PreOption = False,
    provider: options.ProviderOption = None,
    batch: options.BatchOption = None,
    shape: options.ShapeOption = None,
    threads: options.ThreadsOption = None,
    precision: options.PrecisionOption = None,
    opset: Annotated[str | None, typer.Option(help="as-is, max-of-runtime, or a number.", show_default="as-is")] = None,
    axes: Mapping[str, object] = MappingProxyType({}),
    budget: options.BudgetOption = None,
    rounds: options.RoundsOption = None,
    operators: options.OperatorsOption = False,
    sustained: SustainedOption = None,
    tolerance: options.ToleranceOption = None,
    matrix: MatrixOption = None,
    input_: options.InputOption = None,
    inputs: options.InputsOption = None,
    prompts: options.PromptsOption = None,
    expected: options.ExpectedOption = None,
    source: options.SourceOption = None,
    calibration: options.CalibrationOption = None,
    evaluation: options.EvaluationOption = None,
    recipe: options.RecipeOption = "",
    judge: options.JudgeOption = "",
    seed: options.SeedOption = 0,
    diverge: DivergeOption = False,
    strict: options.StrictOption = False,
    json_file: options.DocumentOption = None,
    timings: TimingsOption = None,
    allow_package: options.PackagesOption = None,
    home: options.HomeOption = None,
) -> None:
    """Measure a model here, cells side by side in interleaved rounds, and judge them as a farm does.

    Exit code 0: every planned cell is done, whatever the verdicts; 1: one failed, or none could be measured; 2:
    something given cannot be used; 130: stopped by Ctrl-C, with what was measured until then.
    """
    home = home or default_home()
    runtimes = release_index.resolve_runtimes(ort, home=home, with_prereleases=pre)
    sizes = parse_sizes(shape)
    values: dict[str, object] = {"runtime": runtimes, "provider": provider, "batch": batch, "shapes": sizes}
    values |= {"threads": threads, "precision": precision, "opset": opset, **axes, "budget": budget}
    settings = {"sustained": sustained, "tolerance": parse_tolerances(tolerance), "operators": operators or None}
    matrix_of_options = read_matrix(matrix, values, packages=allow_package)
    declared = apply_settings(matrix_of_options, inputs=parse_fills(input_), **settings)
    if diverge and allow_package:
        raise Usage("--diverge works with known distributions only: leave out --allow-package or --diverge.")
    judging = options.parse_judging(recipe, judge, evaluation)
    options.check_rounds(rounds, declared.budget)
    refuse_unused_prompts(prompts, declared.axes.get("scenario", ()))
    subject = Subject(model, inputs=inputs, expected=expected, seed=seed, source=source, prompts=prompts)
    with require_extra("node"):
        from onnxfarm.here import workbench
    timings = timings and make_folder(timings, option="--timings")
    console = make_console(stderr=True)
    with workbench.open_workbench(subject, home=home, console=console) as bench:
        bench.measurer.timings_dir = timings
        bench.measurer.allowed_packages = declared.allowed
        if calibration is not None:
            bench.set_calibration(calibration)
        if evaluation is not None:
            bench.set_evaluation(evaluation, judging)
        document = bench.measurer.measure(_make_plan(bench, declared, rounds=rounds))
        is_stopped = bench.measurer.is_cancelled()
    if diverge and not is_stopped:
        from onnxfarm.commands.bench_divergence import add_divergent_nodes

        document = add_divergent_nodes(document, model=model, inputs=inputs, home=home, console=console)
    write_document(document, json_file)
    show(document, console=make_console(stderr=json_file == STDOUT))
    if is_stopped:
        raise Stopped("Stopped before the end; what was measured until then is shown above.")
    judge_cells_here(document, strict=strict)


def _make_plan(bench: "Workbench", matrix: Matrix, *, rounds: int | None) -> Plan:
    """Plan the matrix with the model's default shapes. `rounds`: the maximum per block; None: the budget's."""
    from onnxfarm.here import workbench

    plan = bench.plan(bench.add_default_shapes(matrix))
    return plan if rounds is None else workbench.reshape_plan(plan, partial(workbench.limit_rounds, rounds=rounds))
