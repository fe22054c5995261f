"""`onnxfarm bisect MODEL --good 1.20.1 --bad 1.31.1`: finds the release that made the model worse, on this machine.

The JSON document `onnxfarm.bisect/1` has the sentence, the first bad release, its ratio to the good one with the 95 %
interval, the same for every step, and the minutes that the search took.
"""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import ValidationError
from rich.console import Console

from farm.contract.cells import Runtime
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_runtime
from farm.rules.changes.watch_rounds import Rule
from farm.rules.findings.kinds import KEYS, KINDS
from farm.rules.matrices.matrix import Matrix
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.searches import targets
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import read_matrix_without_runtimes
from onnxfarm.commands.feed_options import parse_sizes
from onnxfarm.here.home import default_home
from onnxfarm.here.release_index import resolve_runtimes
from onnxfarm.outputs import make_console, print_lines, write_json
from onnxfarm.problems import Usage, exit_with_problem, require_extra
from onnxfarm.subject import Subject

# the kinds of change that are searched for unless --for names a kind or a metric
DEFAULT_KINDS = [key for key, kind in KINDS.items() if kind.compare is not None]


KindOption = Annotated[
    str,
    typer.Option(
        "--for",
        help=f"Search for a kind of change: {', '.join(KEYS)}; or by a metric such as p99_ms, for better or worse.",
        show_default="the most severe",
    ),
]
ThresholdOption = Annotated[float, typer.Option(help="Slower beyond this fraction counts as bad; 0.05 allows 5 %.")]
OneBatchOption = Annotated[
    str | None,
    typer.Option(
        help="Batch size, or several: the one that changed most is used.",
        show_default="that of the inputs or the model, else 1",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.zip", help="Write a zip that reproduces the change in the first bad release."),
]


@exit_with_problem()
def bisect(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    good: Annotated[str, typer.Option(help="The last good release, e.g. 1.20.1.")],
    bad: Annotated[str, typer.Option(help="A later, bad release, e.g. 1.31.1, or newest.")],
    pre: Annotated[bool, typer.Option("--pre", help="Search release candidates and development builds too.")] = False,
    kind: KindOption = "",
    threshold: ThresholdOption = 0.05,
    provider: options.ProviderOption = None,
    batch: OneBatchOption = None,
    shape: options.ShapeOption = None,
    threads: options.ThreadsOption = None,
    precision: options.PrecisionOption = None,
    optimization: options.OptimizationOption = None,
    scenario: options.ScenarioOption = None,
    memory_limit_mb: options.MemoryLimitOption = None,
    budget: options.BudgetOption = None,
    matrix: options.RuntimelessMatrixOption = None,
    inputs: options.InputsOption = None,
    expected: options.ExpectedOption = None,
    seed: options.SeedOption = 0,
    json_file: options.DocumentOption = None,
    report: ReportOption = None,
    home: options.HomeOption = None,
) -> None:
    """Find the first bad release by halving: each step measures the good one and one other side by side."""
    place = home or default_home()
    rule = _make_rule(kind, threshold)
    sides = _read_sides(
        resolve_runtimes(good, home=place) or "", resolve_runtimes(bad, home=place, with_prereleases=pre) or ""
    )
    metrics = targets.find_metric_names(kind)
    axes = {"provider": provider, "batch": batch, "shapes": parse_sizes(shape), "threads": threads}
    declared = read_matrix_without_runtimes(
        matrix,
        {**axes, "precision": precision, "optimization": optimization, "scenario": scenario, "budget": budget}
        | {"memory-limit-mb": memory_limit_mb},
        command="A bisection",
        options="--good and --bad",
    )
    subject = Subject(model, inputs=inputs, expected=expected, seed=seed)
    request = _Request(subject, declared, rule, sides, metrics, with_prereleases=pre)
    console = make_console(stderr=True)
    answer = _search(request, home=place, report=report, console=console)
    write_json(answer, json_file)
    details = (answer["change"], f"{answer['explanation']}." if answer["explanation"] else "")
    print_lines("", answer["sentence"], *filter(None, details), console=console)


class _Request(NamedTuple):
    """Asks since which release a model is worse. `sides`: the good and the bad release.

    `metrics`: search for a change of these metrics; empty: search for what `rule` calls bad.
    """

    subject: Subject
    declared: Matrix
    rule: Rule
    sides: tuple[Runtime, Runtime]
    metrics: tuple[str, ...] = ()
    with_prereleases: bool = False


def _search(request: _Request, *, home: Path, report: Path | None, console: Console) -> dict[str, Any]:
    """Search on this machine, and return the document `onnxfarm.bisect/1`. Write the zip to `report`, if given.

    Raises Usage and Infrastructure.
    """
    with require_extra("node"):
        from onnxfarm.here import bisection, workbench
    good, bad = request.sides
    versions = bisection.list_candidates(good, bad, home=home, with_prereleases=request.with_prereleases)
    releases = [Runtime(distribution=good.distribution, version=version) for version in versions]
    with workbench.open_workbench(request.subject, home=home, console=console, releases=releases) as bench:
        search = bisection.LocalBisection(
            bench, request.declared, request.rule, good, bad, versions=tuple(versions), metrics=request.metrics
        )
        answer = search.run()
        if report is not None:
            document, plan = search.evidence[answer["first_bad"]]
            old, new = answer["cells"]
            bisection.write_report(bench, plan, document, sides=(old, new), path=report, since=answer["sentence"])
    return answer


def _make_rule(kind: str, threshold: float) -> Rule:
    if kind and kind not in KEYS and not targets.find_metric_names(kind):
        raise Usage(f"--for: {choice_sentence('kind', kind, (*KEYS, *targets.NAMES))}")
    try:
        return Rule.model_validate({"latency": threshold, "kinds": [kind] if kind in KEYS else DEFAULT_KINDS})
    except ValidationError as problem:
        raise Usage(f"--threshold {threshold:g} is not a fraction from 0 to 100: write 0.05 for 5 %.") from problem


def _read_sides(good: str, bad: str) -> tuple[Runtime, Runtime]:
    """Parse both releases. Raises Usage if one cannot be read, or if their distributions differ."""
    try:
        sides = read_runtime(good), read_runtime(bad)
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem
    if sides[0].distribution != sides[1].distribution:
        raise Usage(
            f"--good is of {sides[0].distribution} and --bad of {sides[1].distribution}: name two releases of one, "
            f"such as {DEFAULT_DISTRIBUTION}."
        )
    return sides
