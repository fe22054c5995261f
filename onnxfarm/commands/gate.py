"""`onnxfarm gate MODEL --baseline 1.29.0 --candidate 1.31.1`: may the candidate replace the baseline?

With `--against BASE`, the model is the candidate, and the baseline is another file, or the same file at a commit.

Both are measured on this machine, or with --server on a farm. Exit code 0: yes; 1: no; 2: something given cannot be
used; 3: they could not be measured; 4: it took longer than --timeout.
"""

import filecmp
import math
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import typer
from rich.console import Console

from farm.contract.cells import Budget, Runtime
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.readers import read_runtime
from farm.rules.changes import gate_comment, gate_reports
from farm.rules.matrices.matrix import Matrix
from farm.rules.runtimes.nearest import choice_sentence
from onnxfarm import git_models
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import apply_settings, parse_tolerances, read_matrix, read_matrix_without_runtimes
from onnxfarm.commands.feed_options import parse_sizes
from onnxfarm.gate_process import DEFAULT_CHECKS
from onnxfarm.here.home import default_home
from onnxfarm.here.release_index import check_installable, find_unknown_runtimes, resolve_runtimes
from onnxfarm.model_files import list_model_files
from onnxfarm.outputs import make_console, print_lines, write_document, write_json, write_text
from onnxfarm.problems import GateFailed, Infrastructure, Usage, exit_with_problem, require_extra
from onnxfarm.remote import lookups
from onnxfarm.remote.downloads import download_version
from onnxfarm.screen import show
from onnxfarm.subject import GateRequest, Subject

if TYPE_CHECKING:
    from farm.rules.searches.gate import Checks, Gate, GateOutcome
    from farm.rules.searches.search import Bench, Measured

    class GateBench(Bench[Measured], Protocol):
        def clock(self) -> float: ...


# the file to which a step of GitHub Actions adds its summary
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
# options that the command for repeating the gate on another machine leaves out
WRITING = ("--summary", "--comment", "--junit", "--benchmark-json", "--json", "--home")
LEFT_OUT = (*WRITING, "--server", "--team", "--branch", "--commit")

FailOnOption = Annotated[
    str,
    typer.Option(help="What fails the gate: slower, bigger, lower, parity, placement, failed, unjudged, undecided."),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAMES",
        help="Metrics that slower, bigger and lower speak of beside the p50, such as session_ms,memory.",
        show_default="memory, growth, p99 and the highest rate under load, the first token",
    ),
]
ConfirmOption = Annotated[
    bool, typer.Option("--confirm/--no-confirm", help="Fail on a latency change only if a fresh block confirms it.")
]
CiOption = Annotated[
    bool,
    typer.Option(
        "--ci", help="For a pipeline's machine: see what it cannot see by an A/A pair, judge by processor time."
    ),
]
SlowdownOption = Annotated[
    str,
    typer.Option(metavar="PERCENT", help="A p50 slower by no more, such as '5 %', fails nothing.", show_default="0"),
]
FarmOption = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="Measure on this farm.", show_default="on this machine")
]
SummaryOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Markdown with every comparison and finding.")]
CommentOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Markdown for a pull request: a headline, a table, what explains it.", show_default="none"
    ),
]
BenchmarkOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="For github-action-benchmark's customSmallerIsBetter.")
]


@exit_with_problem()
def gate(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    baseline: Annotated[
        str,
        typer.Option(
            help="The runtime in use now, e.g. 1.29.0 or onnxruntime-openvino==1.24.1.",
            show_default="with --against none",
        ),
    ] = "",
    candidate: Annotated[
        str,
        typer.Option(
            help="The runtime that would replace it, e.g. 1.31.1 or newest.", show_default="with --against none"
        ),
    ] = "",
    against: Annotated[
        str,
        typer.Option(
            metavar="FILE|git:REF[:PATH]|NAME@VERSION",
            help="The model in use now, in place of two runtimes: a file, as a commit has it, or a farm's version.",
            show_default="none",
        ),
    ] = "",
    ort: options.RuntimesOption = None,
    pre: options.PreOption = False,
    tolerance: options.ToleranceOption = None,
    evaluation: options.EvaluationOption = None,
    recipe: options.RecipeOption = "",
    judge: options.JudgeOption = "",
    fail_on: FailOnOption = DEFAULT_CHECKS,
    metric: MetricOption = None,
    provider: options.ProviderOption = None,
    batch: options.BatchOption = None,
    shape: options.ShapeOption = None,
    threads: options.ThreadsOption = None,
    precision: options.PrecisionOption = None,
    scenario: options.ScenarioOption = None,
    memory_limit_mb: options.MemoryLimitOption = None,
    budget: options.BudgetOption = None,
    operators: options.OperatorsOption = False,
    matrix: options.RuntimelessMatrixOption = None,
    inputs: options.InputsOption = None,
    expected: options.ExpectedOption = None,
    seed: options.SeedOption = 0,
    rounds: options.RoundsOption = None,
    confirm: ConfirmOption = True,
    max_slowdown: SlowdownOption = "",
    ci: CiOption = False,
    server: FarmOption = None,
    team: options.TeamOption = "",
    branch: options.BranchOption = "",
    commit: options.CommitOption = "",
    timeout: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Stop waiting after this many minutes.", show_default="never"),
    ] = None,
    summary: SummaryOption = None,
    comment: CommentOption = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="JUnit XML.")] = None,
    benchmark_json: BenchmarkOption = None,
    json_file: options.DocumentOption = None,
    home: options.HomeOption = None,
) -> None:
    """Measure a model on two runtimes, or two models, side by side, and fail where the candidate is worse."""
    with require_extra("node"):
        from farm.rules.searches.gate import Gate
    checks = replace(_parse_checks(fail_on, metric), max_slowdown=_parse_percent(max_slowdown))
    place = _Place(server, team, home or default_home())
    new = "" if against else resolve_runtimes(candidate, home=place.home, with_prereleases=pre) or ""
    sides = None if against else _read_sides(resolve_runtimes(baseline, home=place.home) or "", new)
    of_models = {"--ort": ort, "--tolerance": tolerance, "--evaluation": evaluation, "--recipe": recipe}
    _refuse_mixed_kinds(against, {"--baseline": baseline, "--candidate": candidate}, of_models | {"--judge": judge})
    judging = options.parse_judging(recipe, judge, evaluation)
    if judge and server is not None:
        raise Usage("--judge runs on your own machine and is never sent to a farm: leave out --server.")
    axes = {"provider": provider, "batch": batch, "shapes": parse_sizes(shape), "threads": threads}
    axes |= {"precision": precision, "scenario": scenario, "memory-limit-mb": memory_limit_mb, "budget": budget}
    if sides is None:
        axes |= {"runtime": resolve_runtimes(ort, home=place.home, with_prereleases=pre)}
    declared = _declare_matrix(matrix, axes, sides=sides, tolerance=tolerance)
    declared = replace(declared, operators=True) if operators else declared
    request = GateRequest(
        Subject(model, inputs=inputs, expected=expected, seed=seed),
        deadline=None if timeout is None else time.monotonic() + 60.0 * timeout,
        rounds=rounds,
        is_of_pipeline=ci,
        evaluation=evaluation,
        recipe=judging,
        origin={name: text for name, text in (("branch", branch), ("commit", commit)) if text},
    )
    _refuse_misplaced_options(request, place, budget=declared.budget, timeout_min=timeout)
    console = make_console(stderr=True)
    search = Gate(lambda: declared, sides, checks, confirm)
    outcome, took_s = _measure(search, request, place, against=against, console=console)
    gate_request = gate_comment.GateCall(str(model) if against else new, _make_repeat_command(), took_s)
    files = {"--summary": summary, "--comment": comment, "--junit": junit}
    _write_files(outcome, gate_request, files | {"--benchmark-json": benchmark_json, "--json": json_file})
    show(outcome.document, console=console, address=outcome.document.url or "")
    print_lines(
        "", outcome.headline, *filter(None, [gate_comment.describe_detectable(outcome.document)]), console=console
    )
    if outcome.answer.infra and server is None:
        check_installable(outcome.document)
    if outcome.answer.infra:
        raise Infrastructure(outcome.headline)
    if not outcome.answer.is_passed:
        raise GateFailed(outcome.headline)


class _Place(NamedTuple):
    """Where a gate measures: on the farm `server`, for `team`; or on this machine, with the runtimes in `home`.

    `server` None: on this machine.
    """

    server: str | None
    team: str
    home: Path


def _refuse_mixed_kinds(against: str, of_runtimes: Mapping[str, object], of_models: Mapping[str, object]) -> None:
    """Raise Usage for options of runtimes together with --against, and for options of models without it."""
    if against and (named := [name for name, value in of_runtimes.items() if value]):
        raise Usage(f"--against compares two models: leave out {' and '.join(named)}, or --against.")
    if not against and (named := [name for name, value in of_models.items() if value]):
        raise Usage(f"{named[0]} is for --against, which names the model in use now: add it.")


def _declare_matrix(
    text: str | None, axes: Mapping[str, object], *, sides: tuple[Runtime, Runtime] | None, tolerance: list[str] | None
) -> Matrix:
    """Read the matrix of --matrix, and set the axes of the options in it. Raises Usage.

    `sides`: the two runtimes to compare, which a matrix may not name itself; None: two models are compared.
    """
    if sides is None:
        return apply_settings(read_matrix(text, axes), tolerance=parse_tolerances(tolerance))
    declared = read_matrix_without_runtimes(text, axes, command="A gate", options="--baseline and --candidate")
    return replace(declared, axes={**declared.axes, "runtime": sides})


def _refuse_misplaced_options(
    request: GateRequest, place: _Place, *, budget: Budget, timeout_min: float | None
) -> None:
    """Raise Usage for an option that contradicts others, or the place where the gate measures."""
    if request.subject.expected is not None and request.subject.inputs is None:
        raise Usage("--expected holds the outputs of certain inputs: give those with --inputs.")
    options.check_rounds(request.rounds, budget)
    if request.rounds is not None and place.server is not None:
        raise Usage("--rounds works on this machine only; a farm takes them from --budget: leave out one of the two.")
    if request.is_of_pipeline and place.server is not None:
        raise Usage("--ci is about this machine, and --server measures on a farm: leave out one of the two.")
    of_farms = {"team": place.team, **request.origin}
    if place.server is None and (named := next((name for name, text in of_farms.items() if text), "")):
        raise Usage(f"--{named} is told to a farm: give --server too, or leave it out.")
    if timeout_min is not None and timeout_min <= 0:
        raise Usage(f"--timeout is {timeout_min:g}: give minutes above 0.")


def _measure(
    search: "Gate", request: GateRequest, place: _Place, *, against: str, console: Console
) -> "tuple[GateOutcome, float]":
    """Measure and judge both sides. Return the outcome, and the seconds it took without waiting for a machine.

    Raises Usage, Infrastructure and TimedOut.
    """
    from farm.rules.searches.search import carry_out

    began = time.monotonic()
    with TemporaryDirectory(prefix="onnxfarm-gate-") as folder, ExitStack() as opened:
        if against:
            request = _add_base(request, against, place, Path(folder))
        bench = opened.enter_context(_open_bench(request, place, search.sides or (), console=console))
        outcome = carry_out(search, bench)
        return outcome, bench.clock() - began


def _add_base(request: GateRequest, against: str, place: _Place, folder: Path) -> GateRequest:
    """Return the request with the model in use now as its base, which gets the inputs of the new model.

    `against`: a file, git:REF[:PATH], or NAME@VERSION of a farm. If both models are the same, byte for byte, it prints
    that and raises typer.Exit with 0. Raises Usage and Infrastructure.
    """
    path, new = Path(against), request.subject.model
    is_version = not path.exists() and lookups.VERSION.fullmatch(against) is not None
    if is_version and place.server is not None:
        return replace(request, base_version=against)

    # get the base as a file
    new_files = list_model_files(new)
    if against.startswith(git_models.PREFIX):
        path = git_models.check_out_model(against, model=new, folder=folder)
    elif is_version:
        path = download_version(against, folder=folder)

    # there is nothing to compare if both are the same model
    old_files = list_model_files(path)
    pairs = zip(old_files, new_files, strict=False)
    if len(old_files) == len(new_files) and all(filecmp.cmp(*pair, shallow=False) for pair in pairs):
        print_lines(f"The gate passed: {new} is {against}, byte for byte, and nothing was measured.")
        raise typer.Exit
    base = replace(request.subject, model=path)
    return replace(request, base=base, base_commit=git_models.parse_commit(against))


def _open_bench(
    request: GateRequest, place: _Place, sides: Sequence[Runtime], *, console: Console
) -> AbstractContextManager["GateBench"]:
    if place.server is not None:
        from onnxfarm.remote import gate as remote

        return remote.open_remote_gate(request, server=place.server, team=place.team, console=console)
    from onnxfarm.here import gate as here

    releases = find_unknown_runtimes(sides, home=place.home)
    return here.open_local_gate(request, home=place.home, releases=releases, console=console)


def _parse_checks(fail_on: str, metric: str | None) -> "Checks":
    """Parse the texts of --fail-on and --metric. `metric` None: DEFAULT_METRICS. Raises Usage for an unknown name."""
    from farm.rules.changes.gate import DEFAULT_METRICS
    from farm.rules.findings.kinds import CHECKS
    from farm.rules.searches.gate import Checks
    from farm.rules.searches.targets import MEMORY, NAMES, find_metric_names

    checks = options.split_list(fail_on)
    for check in checks:
        if check not in CHECKS:
            raise Usage(f"--fail-on: {choice_sentence('check', check, CHECKS)}")
    if not checks:
        raise Usage(f"--fail-on is empty, so the gate could never fail: choose from {', '.join(CHECKS)}.")
    metrics = DEFAULT_METRICS if metric is None else options.split_list(metric)
    for name in metrics:
        if not find_metric_names(name):
            raise Usage(f"--metric: {choice_sentence('metric', name, (MEMORY, *NAMES))}")
    metric_names = tuple(metric_name for name in metrics for metric_name in find_metric_names(name))
    return Checks(fail_on=tuple(check for check in CHECKS if check in checks), metrics=metric_names)


def _parse_percent(percent: str) -> float:
    """Parse `5 %`, `5%` or `5` into 0.05. Empty text gives 0. Raises Usage."""
    text = percent.strip().removesuffix("%").strip()
    try:
        value = float(text or 0) / 100
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise Usage(f"--max-slowdown is {percent!r}: give a percentage such as '5 %'.")
    return value


def _read_sides(baseline: str, candidate: str) -> tuple[Runtime, Runtime]:
    """Parse both runtimes. Raises Usage if one is missing or wrong, or if they are equal."""
    if not (baseline and candidate):
        raise Usage("Say what is compared: --baseline and --candidate are two runtimes, --against is another model.")
    old, new = _read_runtime(baseline, "--baseline"), _read_runtime(candidate, "--candidate")
    if old == new:
        raise Usage(f"--baseline and --candidate are both {old}: name two runtimes.")
    return old, new


def _read_runtime(text: str, option: str) -> Runtime:
    try:
        return read_runtime(text)
    except MatrixProblem as problem:
        raise Usage(f"{option}: {problem}") from problem


def _write_files(outcome: "GateOutcome", request: gate_comment.GateCall, files: Mapping[str, Path | None]) -> None:
    """Write the answer to GitHub's step summary and to `files`, by option; None: not given. Raises Usage."""
    answer, document = outcome.answer, outcome.document
    comment = gate_comment.as_comment(answer, document, request)
    texts = {"--summary": gate_reports.as_markdown(answer, document), "--comment": comment}
    for option, text in (texts | {"--junit": gate_reports.as_junit(answer, document)}).items():
        if (path := files[option]) is not None:
            write_text(text, path)
    if step := os.environ.get(STEP_SUMMARY):
        _append(f"{comment}\n{gate_reports.format_findings(answer)}\n", Path(step))
    write_json(gate_reports.as_benchmark_entries(answer, document), files["--benchmark-json"])
    write_document(document, files["--json"])


def _make_repeat_command() -> str:
    """Make the command that repeats this gate on another machine: this one, without the options in LEFT_OUT."""
    words, is_value = ["onnxfarm"], False
    for word in sys.argv[1:]:
        if not is_value and word.partition("=")[0] not in LEFT_OUT:
            words.append(word)
        is_value = not is_value and word in LEFT_OUT
    return shlex.join(words)


def _append(text: str, path: Path) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise Usage(f"${STEP_SUMMARY} names {path}, which cannot be written ({problem.strerror}).") from problem
