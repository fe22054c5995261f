"""`onnxfarm bisect MODEL --good 1.20.1 --bad 1.31.1`: which release made the model worse, on this machine.

The JSON document, `onnxfarm.bisect/1`, holds the sentence, the first bad release with the ratio to the good one and its
95 % interval, every step with its own, and the minutes it took.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console

from farm.contract.cells import Runtime
from farm.rules.matrices.axes import DEFAULT_DISTRIBUTION, read_runtime
from farm.rules.matrices.matrix_text import MatrixProblem
from farm.rules.nearest import choice_sentence
from farm.rules.watching import KINDS, Rule
from onnxfarm.bench import default_home
from onnxfarm.bench_options import matrix_of, sizes_of
from onnxfarm.problems import Usage, main_guard, needs_extra
from onnxfarm.results import write_text
from onnxfarm.screen import PLAIN_WIDTH

# what is looked for unless --for names one kind; the others are single figures of a check pass, and noisy
DEFAULT_KINDS = ("slower", "parity", "placement", "failed")


@main_guard()
def bisect(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")],
    good: Annotated[str, typer.Option(help="A release it was well with, e.g. 1.20.1.")],
    bad: Annotated[str, typer.Option(help="A later release it is worse with, e.g. 1.31.1.")],
    kind: Annotated[
        str, typer.Option("--for", help=f"Look for one kind of change: {', '.join(KINDS)}; default: the gravest.")
    ] = "",
    threshold: Annotated[float, typer.Option(help="Slower counts beyond this fraction; 0.05 lets 5 % pass.")] = 0.05,
    provider: Annotated[str | None, typer.Option(help="Execution provider, e.g. cpu.")] = None,
    batch: Annotated[
        str | None, typer.Option(help="Batch size, or several: the one that changed most is used.")
    ] = None,
    shape: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help="A dynamic dimension; repeat.")] = None,
    threads: Annotated[str | None, typer.Option(help="Intra-op threads, e.g. 1.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32, fp16, int8-dynamic, …")] = None,
    optimization: Annotated[str | None, typer.Option(help="disable, basic, extended, all.")] = None,
    budget: Annotated[str | None, typer.Option(help="quick, standard or precise.")] = None,
    matrix: Annotated[
        str | None, typer.Option(metavar="FILE", help="A matrix without `runtime`, - for stdin, or JSON text.")
    ] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="NPZ", help="Inputs by name; default: seeded ones.")] = None,
    expected: Annotated[Path | None, typer.Option(metavar="NPZ", help="Outputs that the inputs should give.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of inputs and of the order of rounds.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the answer and its steps; - is stdout.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.zip", help="Write all that repeats the first bad release's change.")
    ] = None,
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="Where runtimes are kept.")] = None,
) -> None:
    """Find the first bad release by halving: each step measures the good one and one other side by side."""
    rule = _rule(kind, threshold)
    sides = _sides(good, bad)
    axes = {"provider": provider, "batch": batch, "shapes": sizes_of(shape), "threads": threads}
    declared = matrix_of(matrix, {**axes, "precision": precision, "optimization": optimization, "budget": budget})
    if "runtime" in declared.axes:
        raise Usage("A bisection sets the runtimes by --good and --bad: leave `runtime` out of the matrix.")
    with needs_extra("node"):
        from onnxfarm import bisect_run, workbench
    versions = bisect_run.candidates(*sides)
    console = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH)
    with workbench.opened(
        model,
        home=home or default_home(),
        console=console,
        inputs=inputs,
        expected=expected,
        seed=seed,
        releases=[f"{sides[0].distribution}=={version}" for version in versions],
    ) as bench:
        search = bisect_run.Search(bench, declared, rule, *sides, versions=tuple(versions))
        answer = search.run()
        if report is not None:
            from onnxfarm.report_local import write_report

            document, plan = search.evidence[answer["first_bad"]]
            cells = tuple(answer["cells"])
            write_report(bench, plan, document, sides=cells, path=report, since=answer["sentence"])
    if json_file is not None:
        write_text(json.dumps(answer, indent=2, ensure_ascii=False) + "\n", json_file)
    _tell(answer, console=console)


def _rule(kind: str, threshold: float) -> Rule:
    if kind and kind not in KINDS:
        raise Usage(f"--for: {choice_sentence('kind', kind, KINDS)}")
    try:
        return Rule.model_validate({"latency": threshold, "kinds": [kind] if kind else list(DEFAULT_KINDS)})
    except ValidationError as problem:
        raise Usage(f"--threshold {threshold:g} is no fraction from 0 to 100, like 0.05 for 5 %.") from problem


def _sides(good: str, bad: str) -> tuple[Runtime, Runtime]:
    """Both releases, of one distribution. Raises Usage."""
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


def _tell(answer: dict[str, Any], *, console: Console) -> None:
    lines = ["", answer["sentence"], *([answer["change"]] if answer["change"] else [])]
    lines += [f"{answer['explanation']}."] if answer["explanation"] else []
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
