"""`onnxfarm find MODEL`: the fastest settings that are accurate enough and fit, by a race on this machine or a farm.

The JSON document is `onnxfarm.find/1`: the answer with its figures, what nobody could judge, and why the others left.
"""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from farm.base.grouping import group_by
from farm.contract.document_find import GOALS, MAX_MINUTES, Found, FoundSetting, Goal
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import to_plain
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.points import expand
from farm.rules.matrices.spaces import BATCHES, default_space
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.numbers import MIB, change_interval, counted, latency, memory, plain
from onnxfarm.commands import options
from onnxfarm.commands.bench import RuntimesOption, ToleranceOption
from onnxfarm.commands.bench_options import apply_settings, parse_tolerances, read_matrix
from onnxfarm.commands.feed_options import parse_fills, parse_sizes
from onnxfarm.here.home import default_home
from onnxfarm.here.release_index import resolve_runtimes
from onnxfarm.outputs import make_console, make_folder, make_table, print_lines, write_plain, write_text
from onnxfarm.problems import GateFailed, Stopped, Usage, exit_with_problem, require_extra
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.uploads import Bundle
from onnxfarm.subject import Judging, Subject
from onnxfarm.terminal_tables import split_to_width

if TYPE_CHECKING:
    from onnxfarm.here.find import Question

ITEMS = "items/s by the clock"
# a block that goes on after the time is ended once all took so many times as much
LATE = 2.0
SHOWN_LEFT = 24
NO_ANSWER = {"undecided": "It was not decided, as told above.", "nothing": "Nothing keeps the budgets, as told above."}
_TIMES = {"us": 0.001, "ms": 1.0, "": 1.0, "s": 1000.0}
_SIZES = {"kb": 1e3, "mb": 1e6, "": 1e6, "gb": 1e9, "kib": 1024.0, "mib": float(MIB), "gib": 1024.0 * MIB}
_SHARES = {"": 1.0, "%": 0.01}


@exit_with_problem()
def find(  # noqa: PLR0913  every option of the command
    model: options.ModelArgument,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE",
            help="A matrix file whose points compete, - for stdin, or JSON text.",
            show_default="by the provider: precisions, threads, spinning, arena, optimization",
        ),
    ] = None,
    max_p50: Annotated[str, typer.Option(metavar="TIME", help="Budget, such as 5ms.", show_default="none")] = "",
    max_p99: Annotated[str, typer.Option(metavar="TIME", help="Budget, such as 8ms.", show_default="none")] = "",
    min_accuracy: Annotated[
        str, typer.Option(metavar="SHARE", help="Budget on --evaluation: 0.97 or 97%.", show_default="none")
    ] = "",
    max_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Budget of the peak, such as 300MB.", show_default="none")
    ] = "",
    tolerance: ToleranceOption = None,
    goal: Annotated[str, typer.Option(help=f"What is to be best: {', '.join(GOALS)}.")] = GOALS[0],
    minutes: Annotated[float, typer.Option(help="Of this machine, about.")] = 10.0,
    ort: RuntimesOption = None,
    provider: Annotated[
        str | None, typer.Option(help="Of the usual space, e.g. cpu,openvino.", show_default="cpu")
    ] = None,
    batch: options.BatchOption = None,
    shape: options.ShapeOption = None,
    input_: options.InputOption = None,
    inputs: options.InputsOption = None,
    expected: options.ExpectedOption = None,
    evaluation: options.EvaluationOption = None,
    recipe: options.RecipeOption = "",
    judge: options.JudgeOption = "",
    calibration: options.CalibrationOption = None,
    seed: options.SeedOption = 0,
    nodes: Annotated[
        str | None,
        typer.Option(
            help="On a farm: a race on each, tags or node:NAME, e.g. cpu,cuda.", show_default="on this machine"
        ),
    ] = None,
    server: ServerOption = None,
    team: options.TeamOption = "",
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the model that the answer runs, converted.", show_default="none"),
    ] = None,
    json_file: options.DocumentOption = None,
    home: options.HomeOption = None,
) -> None:
    """Find the fastest settings that are accurate enough and fit, and say what could not be told apart.

    Exit code 0: an answer, be it one of several; 1: nothing keeps the budgets, or it was not decided; 2: something
    given cannot be used; 130: stopped by Ctrl-C, with the best so far.
    """
    place = home or default_home()
    _check(goal, minutes, has_accuracy=bool(min_accuracy), evaluation=evaluation)
    judging = options.parse_judging(recipe, judge, evaluation)
    batches = batch or (BATCHES if goal == "throughput" else None)
    is_here = nodes is None and server is None
    axes: dict[str, object] = {"runtime": resolve_runtimes(ort, home=place) if is_here else ort, "batch": batches}
    axes |= {"shapes": parse_sizes(shape)}
    beside = read_matrix(None, axes) if any(axes.values()) else Matrix()
    beside = apply_settings(beside, inputs=parse_fills(input_), tolerance=parse_tolerances(tolerance))
    budgets = {
        "max_p50_ms": _amount(max_p50, "--max-p50", _TIMES, "a time, such as 5ms"),
        "max_p99_ms": _amount(max_p99, "--max-p99", _TIMES, "a time, such as 8ms"),
        "max_memory_bytes": _amount(max_memory, "--max-memory", _SIZES, "a size, such as 300MB"),
        "min_accuracy": _amount(min_accuracy, "--min-accuracy", _SHARES, "a share, such as 0.97 or 97%"),
    }
    given = _Given(Subject(model, inputs, expected, seed), place, calibration, evaluation, judging, save)
    asked = _Asked(over, provider, beside, goal, minutes, budgets)
    console = make_console(stderr=True)
    if not is_here:
        _find_on_farm(asked, given, nodes, server=server, team=team, json_file=json_file, console=console)
        return
    with require_extra("node"):
        from farm.rules.searches.limits import Limits
        from onnxfarm.here.find import Question, count_physical_cores
    limits = Limits(**budgets, has_labels=evaluation is not None, has_tolerance=bool(tolerance))
    space = _space(asked, cores=count_physical_cores())
    question = Question(str(model), cast(Goal, goal), limits, minutes)
    _write_and_show(_found(space, question, given, console=console), json_file, console=console)


@dataclass(frozen=True)
class _Asked:
    """What competes, and for what. `beside`: axes and settings that all of it has."""

    over: str | None
    provider: str | None
    beside: Matrix
    goal: str
    minutes: float
    budgets: Mapping[str, float | None]


@dataclass(frozen=True)
class _Given:
    """What a race is given beside its space."""

    subject: Subject
    home: Path
    calibration: Path | None
    evaluation: Path | None
    judging: Judging
    save: Path | None


def _find_on_farm(
    asked: _Asked,
    given: _Given,
    nodes: str | None,
    *,
    server: str | None,
    team: str,
    json_file: Path | None,
    console: Console,
) -> None:
    """Runs the search on a farm, and shows its answers. Raises GateFailed where some hardware has none, and Stopped."""
    from onnxfarm.remote import find as remote

    if given.save is not None or not isinstance(given.judging, str):
        raise Usage("--save and --judge are of this machine: leave them out on a farm.")
    space = _over(asked) if asked.over is not None else None
    order = {
        "goal": asked.goal,
        "minutes": asked.minutes,
        "hardware": [name.strip() for name in (nodes or "").split(",") if name.strip()],
        "providers": [name.strip() for name in (asked.provider or "cpu").split(",")],
        "beside": {} if asked.beside == Matrix() else asked.beside.as_plain(),
        **{name: value for name, value in asked.budgets.items() if value is not None},
        **({} if space is None else {"space": space.as_plain()}),
    }
    beside = {"inputs": given.subject.inputs, "expected": given.subject.expected}
    beside |= {"evaluation": given.evaluation, "calibration": given.calibration}
    bundle = Bundle(given.subject.model, beside, {"team": team, "recipe": given.judging})
    done = remote.find_settings(bundle, order, server=server, console=console)
    founds = remote.parse_answers(done)
    if json_file is not None:
        documents = [found.model_dump(mode="json", by_alias=True) for found in founds]
        write_plain(documents[0] if len(documents) == 1 else documents, json_file)
    for race, found in zip(done.races, founds, strict=True):
        print_lines(*([f"\n{race.hardware}:"] if len(founds) > 1 else []), console=console)
        show(found, console=console)
    if len(founds) > 1:
        print_lines("", done.sentence, console=console)
    _end(founds)


def _found(space: Matrix, question: "Question", given: _Given, *, console: Console) -> Found:
    """Runs the race on this machine. Raises Usage, Infrastructure and Stopped."""
    from onnxfarm.here import find as race
    from onnxfarm.here import workbench

    folder = given.save and make_folder(given.save, option="--save")
    late_at = time.monotonic() + 60.0 * LATE * question.minutes
    with workbench.open_workbench(
        given.subject, home=given.home, console=console, is_late=lambda: bench.clock() > late_at
    ) as bench:
        if given.calibration is not None:
            bench.set_calibration(given.calibration)
        if given.evaluation is not None:
            bench.set_evaluation(given.evaluation, given.judging)
        saving = None if folder is None else partial(bench.save_variant, folder=folder)
        return race.run_race(bench, space, replace(question, save=saving))


def _write_and_show(found: Found, json_file: Path | None, *, console: Console) -> None:
    """Writes and shows the document. Raises Stopped, and GateFailed where there is no answer."""
    if json_file is not None:
        write_text(found.to_json() + "\n", json_file)
    show(found, console=console)
    _end([found])


def _end(founds: Sequence[Found]) -> None:
    """Raises Stopped, and GateFailed where there is no answer."""
    for found in founds:
        if found.is_stopped:
            raise Stopped("Stopped before the end; what was known until then is shown above.")
        if found.state in NO_ANSWER:
            raise GateFailed(NO_ANSWER[found.state])


def _check(goal: str, minutes: float, *, has_accuracy: bool, evaluation: Path | None) -> None:
    """Raises Usage."""
    if goal not in GOALS:
        raise Usage(f"--goal: {choice_sentence('goal', goal, GOALS)}")
    if not 0 < minutes <= MAX_MINUTES:
        raise Usage(f"--minutes is {minutes:g}: give minutes above 0, and {MAX_MINUTES:g} at most.")
    if has_accuracy and evaluation is None:
        raise Usage("--min-accuracy needs labelled data: add them with --evaluation.")


def _space(asked: _Asked, *, cores: int) -> Matrix:
    """What competes: the points of a file, or the usual space of the providers. Raises Usage."""
    if asked.over is not None:
        return _over(asked)
    try:
        names = [name.strip() for name in (asked.provider or "cpu").split(",")]
        return default_space(names, cores=cores, beside=asked.beside)
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem


def _over(asked: _Asked) -> Matrix:
    """The points of a file. Raises Usage."""
    if asked.provider is not None:
        raise Usage("--provider is of the usual space, and --over names another: leave out one of the two.")
    beside = asked.beside
    space = read_matrix(asked.over, {axis: [*map(to_plain, values)] for axis, values in beside.axes.items()})
    space = apply_settings(space, inputs=beside.inputs, tolerance=beside.as_plain().get("tolerance"))
    scenarios = {str(point.values.get("scenario", "single")) for point in expand(space).points}
    if scenarios != {"single"}:
        raise Usage(
            f"--over has the scenario {min(scenarios - {'single'})}: find races single inferences, leave it out."
        )
    return space


def _amount(text: str, option: str, units: Mapping[str, float], such: str) -> float | None:
    """A number above zero with its unit; None where nothing is given. Raises Usage."""
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?) ?([A-Za-z%]*)", text.strip())
    unit = units.get(found[2].lower()) if found else None
    if found is None or unit is None or not 0 < float(found[1]) * unit < math.inf:
        raise Usage(f"{option} is {text[:40]!r}: give {such}.")
    return float(found[1]) * unit


def show(found: Found, *, console: Console) -> None:
    """Print a document `onnxfarm.find/1` for people."""
    console.print(Text(f"\n{found.sentence}\n", style="bold"), soft_wrap=True)
    known = found.answer or ([found.default] if found.default else [])
    is_beside = found.default is not None and all(found.default.settings != each.settings for each in found.answer)
    rows = [*known, *([found.default] if found.default and found.answer and is_beside else [])]
    if rows:
        _show_table(found, rows, console=console)
    for each in found.apart:
        figure = _p50(each)
        print_lines(f"apart: {each.label}, {figure}; {each.note}", console=console)
    for why, some in group_by(found.left, lambda left: left.why).items():
        print_lines("", f"{why}:", *(f"  {left.label}: {left.text}" for left in some[:SHOWN_LEFT]), console=console)
        if len(some) > SHOWN_LEFT:
            print_lines(f"  and {len(some) - SHOWN_LEFT} more, which --json has", console=console)
    for words in found.budget_costs.values():
        print_lines("", words, console=console)
    if found.python:
        programs = [*found.python.splitlines(), "", *found.javascript.splitlines()]
        print_lines("", *programs, "", f"Check it again: {found.gate}", console=console)
    print_lines(
        "", f"It took {found.minutes:.1f} minutes and {counted(found.launches, 'launch', 'launches')}.", console=console
    )


def _show_table(found: Found, rows: Sequence[FoundSetting], *, console: Console) -> None:
    figures = ["p50", "memory", *([ITEMS] if found.goal == "throughput" else []), "against the first"]
    heads = [*figures, *(["accuracy"] if any(row.accuracy for row in rows) else [])]
    columns = (Column(head, justify="right", no_wrap=True) for head in heads)
    table = make_table("setting", *columns)
    for row in rows:
        interval = (
            change_interval(row.ratio_low, row.ratio_high, ratio=row.ratio, is_directed=False) if row.ratio else ""
        )
        texts = {
            "p50": _p50(row),
            "memory": memory(row.peak_memory_bytes),
            ITEMS: plain(row.throughput),
            "against the first": interval,
            "accuracy": row.accuracy,
        }
        table.add_row(row.label, *(texts[head] for head in heads))
    for part in split_to_width(table, width=console.width):
        console.print(part)


def _p50(row: FoundSetting) -> str:
    return latency(row.p50_ms, row.p50_ci_ms)
