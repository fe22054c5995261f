"""`onnxfarm gate MODEL --baseline 1.29.0 --candidate 1.31.1`: may the candidate replace the baseline?

Measured on this machine, or on a farm with --server. Exit code 0: yes; 1: no; 2: what was given cannot be used; 3: it
could not be measured; 4: it took longer than --timeout.
"""

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from farm.contract.cells import Runtime
from farm.contract.document import Document
from farm.rules.matrices import matrix as matrices
from farm.rules.matrices.axes import read_runtime
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.matrix_text import MatrixProblem
from farm.rules.nearest import choice_sentence
from onnxfarm import gate_files
from onnxfarm.bench_options import matrix_of, sizes_of
from onnxfarm.problems import GateFailed, Infrastructure, Usage, main_guard, needs_extra
from onnxfarm.published import beyond
from onnxfarm.screen import PLAIN_WIDTH

DEFAULT_CHECKS = "slower,parity,placement,failed"
MOST_ROUNDS = 96


@main_guard()
def gate(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx (its external data is found), or a .zip.")],
    baseline: Annotated[str, typer.Option(help="What is used now, e.g. 1.29.0 or onnxruntime-openvino==1.24.1.")],
    candidate: Annotated[str, typer.Option(help="What would replace it, e.g. 1.31.1.")],
    fail_on: Annotated[
        str, typer.Option(help="Of slower, parity, placement, failed, undecided: what fails the gate.")
    ] = DEFAULT_CHECKS,
    provider: Annotated[str | None, typer.Option(help="Execution providers, e.g. cpu.")] = None,
    batch: Annotated[str | None, typer.Option(help="Batch sizes, e.g. 1,8.")] = None,
    shape: Annotated[list[str] | None, typer.Option(metavar="NAME=SIZE", help="A dynamic dimension; repeat.")] = None,
    threads: Annotated[str | None, typer.Option(help="Intra-op threads, e.g. 1.")] = None,
    precision: Annotated[str | None, typer.Option(help="fp32, fp16, int8-dynamic, …")] = None,
    budget: Annotated[str | None, typer.Option(help="quick, standard or precise.")] = None,
    matrix: Annotated[
        str | None, typer.Option(metavar="FILE", help="A matrix without `runtime`, - for stdin, or JSON text.")
    ] = None,
    inputs: Annotated[Path | None, typer.Option(metavar="NPZ", help="Inputs by name; default: seeded ones.")] = None,
    expected: Annotated[Path | None, typer.Option(metavar="NPZ", help="Outputs that the inputs should give.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of inputs and of the order of rounds.")] = 0,
    rounds: Annotated[int, typer.Option(help="A block goes on up to so many while something is undecided.")] = 24,
    confirm: Annotated[
        bool, typer.Option("--confirm/--no-confirm", help="Fail on a change of latency once a fresh block shows it.")
    ] = True,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="Measure on this farm; default: on this machine.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="MINUTES", help="Give up after so long.")] = None,
    summary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown; also added to $GITHUB_STEP_SUMMARY."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="JUnit XML.")] = None,
    benchmark_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For github-action-benchmark's customSmallerIsBetter.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The bench document; - is stdout.")
    ] = None,
    home: Annotated[Path | None, typer.Option(metavar="DIR", help="Where runtimes are kept.")] = None,
) -> None:
    """Measure a model with two runtimes side by side, and fail when the candidate is worse."""
    checks = _checks(fail_on)
    old, new = _runtime(baseline, "--baseline"), _runtime(candidate, "--candidate")
    if old == new:
        raise Usage(f"--baseline and --candidate are both {old}: name two runtimes.")
    axes = {"provider": provider, "batch": batch, "shapes": sizes_of(shape), "threads": threads}
    declared = _declared(matrix, {**axes, "precision": precision, "budget": budget}, old=old, new=new)
    if expected is not None and inputs is None:
        raise Usage("--expected says what certain inputs give: add them with --inputs.")
    if not 1 <= rounds <= MOST_ROUNDS:
        raise Usage(f"--rounds is {rounds}: give 1 to {MOST_ROUNDS}.")
    if timeout is not None and timeout <= 0:
        raise Usage(f"--timeout {timeout:g} is no time: give minutes above 0.")
    console = Console(stderr=True, width=None if sys.stderr.isatty() else PLAIN_WIDTH)
    with needs_extra("node"):
        from onnxfarm import gate_benches, gate_judging
    releases = beyond((old, new)) if server is None else ()
    deadline = None if timeout is None else time.monotonic() + 60.0 * timeout
    where = gate_benches.Given(
        model=model, inputs=inputs, expected=expected, seed=seed, deadline=deadline, rounds=rounds, releases=releases
    )
    with gate_benches.bench_for(where, server=server, home=home, console=console) as bench:
        outcome = gate_judging.run_gate(bench, declared, old=old, new=new, fail_on=checks, confirm=confirm)
    gate_files.write(outcome, summary=summary, junit=junit, benchmark_json=benchmark_json, json_file=json_file)
    _tell(outcome.document, outcome.headline, console=console)
    if outcome.infra:
        raise Infrastructure(f"It could not be measured: {outcome.infra[0]}")
    if not outcome.answer.is_passed:
        raise GateFailed(outcome.headline)


def _checks(text: str) -> tuple[Any, ...]:
    from farm.rules.reporting.gate import CHECKS

    named = [part.strip() for part in text.split(",") if part.strip()]
    for one in named:
        if one not in CHECKS:
            raise Usage(f"--fail-on: {choice_sentence('check', one, CHECKS)}")
    if not named:
        raise Usage(f"--fail-on names nothing, so that the gate could not fail: choose of {', '.join(CHECKS)}.")
    return tuple(named)


def _runtime(text: str, option: str) -> Runtime:
    try:
        return read_runtime(text)
    except MatrixProblem as problem:
        raise Usage(f"{option}: {problem}") from problem


def _declared(text: str | None, axes: dict[str, Any], *, old: Runtime, new: Runtime) -> Matrix:
    base = matrix_of(text, {}) if text is not None else None
    if base is not None and "runtime" in base.axes:
        raise Usage("A gate sets the runtimes by --baseline and --candidate: leave `runtime` out of the matrix.")
    try:
        return matrices.from_options(base, **axes, runtime=[str(old), str(new)])
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def _tell(document: Document, headline: str, *, console: Console) -> None:
    from onnxfarm.screen import show

    show(document, console=console, address=document.url or "")
    console.print(f"\n{headline}", highlight=False, markup=False, soft_wrap=True)
