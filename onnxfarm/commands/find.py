"""`onnxfarm find MODEL`: finds the fastest settings within given budgets, by a race on this machine or a farm.

The JSON document `onnxfarm.find/1` has the best settings with their figures, what could not be judged, and why each
other setting was dropped from the race.
"""

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from farm.contract.document_find import DECIDED, GOALS, MAX_MINUTES, Found, Goal
from farm.rules.cells.problems import MatrixProblem
from farm.rules.cells.values import to_plain
from farm.rules.matrices.matrix import Matrix
from farm.rules.matrices.spaces import BATCHES, default_space
from farm.rules.presenting.race_settings import make_dropped_table, make_settings_table
from farm.rules.runtimes.nearest import choice_sentence
from farm.rules.wording.numbers import MIB, counted
from onnxfarm.commands import options
from onnxfarm.commands.bench_options import apply_settings, parse_tolerances, read_matrix
from onnxfarm.commands.feed_options import parse_fills, parse_sizes
from onnxfarm.here.home import default_home
from onnxfarm.here.release_index import resolve_runtimes
from onnxfarm.outputs import make_console, make_folder, print_lines, write_json
from onnxfarm.problems import GateFailed, Stopped, Usage, exit_with_problem, require_extra
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.uploads import Bundle
from onnxfarm.subject import Judging, Subject
from onnxfarm.terminal_tables import print_table

# a race may last longer than --minutes, but is stopped after this multiple of them
MAX_OVERTIME = 2.0
MAX_SHOWN_DROPPED = 24
TIMES = {"us": 0.001, "ms": 1.0, "": 1.0, "s": 1000.0}
SIZES = {"kb": 1e3, "mb": 1e6, "": 1e6, "gb": 1e9, "kib": 1024.0, "mib": float(MIB), "gib": 1024.0 * MIB}
SHARES = {"": 1.0, "%": 0.01}


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
    max_p50: Annotated[str, typer.Option(metavar="TIME", help="Median budget, such as 5ms.", show_default="none")] = "",
    max_p99: Annotated[str, typer.Option(metavar="TIME", help="p99 budget, such as 8ms.", show_default="none")] = "",
    min_accuracy: Annotated[
        str, typer.Option(metavar="SHARE", help="Budget on the data of --evaluation: 0.97 or 97%.", show_default="none")
    ] = "",
    max_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Budget of the peak memory, such as 300MB.", show_default="none")
    ] = "",
    tolerance: options.ToleranceOption = None,
    goal: Annotated[str, typer.Option(help=f"What is to be best: {', '.join(GOALS)}.")] = GOALS[0],
    minutes: Annotated[float, typer.Option(help="About how many minutes of the machine it may take.")] = 10.0,
    ort: options.RuntimesOption = None,
    provider: Annotated[
        str | None, typer.Option(help="Providers that the usual space has, e.g. cpu,openvino.", show_default="cpu")
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
            help="On a farm: a race on each of these tags or nodes, e.g. cpu,node:NAME.", show_default="on this machine"
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
    """Find the fastest settings within the budgets for time, memory and accuracy.

    Exit code 0: an answer, be it one of several; 1: nothing keeps the budgets, or it was not decided; 2: something
    given cannot be used; 130: stopped by Ctrl-C, with the best so far.
    """
    place = home or default_home()
    if goal not in GOALS:
        raise Usage(f"--goal: {choice_sentence('goal', goal, GOALS)}")
    if not 0 < minutes <= MAX_MINUTES:
        raise Usage(f"--minutes is {minutes:g}: give minutes above 0, and {MAX_MINUTES:g} at most.")
    if min_accuracy and evaluation is None:
        raise Usage("--min-accuracy needs labelled data: add them with --evaluation.")
    is_here = nodes is None and server is None
    axes: dict[str, object] = {
        "runtime": resolve_runtimes(ort, home=place) if is_here else ort,
        "batch": batch or (BATCHES if goal == "throughput" and over is None else None),
        "shapes": parse_sizes(shape),
    }
    extra_axes = read_matrix(None, axes) if any(axes.values()) else Matrix()
    extra_axes = apply_settings(extra_axes, inputs=parse_fills(input_), tolerance=parse_tolerances(tolerance))
    budgets = {
        "max_p50_ms": _parse_amount(max_p50, "--max-p50", TIMES, "a time, such as 5ms"),
        "max_p99_ms": _parse_amount(max_p99, "--max-p99", TIMES, "a time, such as 8ms"),
        "max_memory_bytes": _parse_amount(max_memory, "--max-memory", SIZES, "a size, such as 300MB"),
        "min_accuracy": _parse_amount(min_accuracy, "--min-accuracy", SHARES, "a share, such as 0.97 or 97%"),
    }
    if over is not None and provider is not None:
        raise Usage("--provider is of the usual space, and --over names another: leave out one of the two.")
    space = None if over is None else _read_space(over, extra_axes)
    order = _Order(
        subject=Subject(model, inputs, expected, seed),
        space=space,
        providers=options.split_list(provider or "") or ["cpu"],
        extra_axes=extra_axes,
        goal=goal,
        minutes=minutes,
        budgets=budgets,
        calibration=calibration,
        evaluation=evaluation,
        judging=options.parse_judging(recipe, judge, evaluation),
    )
    console = make_console(stderr=True)
    if is_here:
        answers, sentence = {"": _race_here(order, home=place, save=save, console=console)}, ""
    elif save is not None or not isinstance(order.judging, str):
        raise Usage("--save and --judge are of this machine: leave them out on a farm.")
    else:
        hardware = options.split_list(nodes or "")
        answers, sentence = _race_on_farm(order, hardware, server=server, team=team, console=console)
    _report_answers(answers, sentence, json_file, console=console)


@dataclass(frozen=True)
class _Order:
    """The settings that race, and the goal. `space` None: the default space of `providers`, with `extra_axes`.

    `budgets`: limits by their key in the document; None: no limit.
    """

    subject: Subject
    space: Matrix | None
    providers: list[str]
    extra_axes: Matrix
    goal: Goal
    minutes: float
    budgets: Mapping[str, float | None]
    calibration: Path | None
    evaluation: Path | None
    judging: Judging


def _race_on_farm(
    order: _Order, hardware: Sequence[str], *, server: str | None, team: str, console: Console
) -> tuple[dict[str, Found], str]:
    """Race on a farm. Return the answer of each race by its hardware, and a sentence about all races.

    Raises Usage, Infrastructure and TimedOut.
    """
    from onnxfarm.remote import find as remote

    payload = {
        "goal": order.goal,
        "minutes": order.minutes,
        "hardware": hardware,
        "providers": order.providers,
        "beside": {} if order.extra_axes == Matrix() else order.extra_axes.as_plain(),
        "space": None if order.space is None else order.space.as_plain(),
        **order.budgets,
    }
    files = {"inputs": order.subject.inputs, "expected": order.subject.expected}
    files |= {"evaluation": order.evaluation, "calibration": order.calibration}
    bundle = Bundle(order.subject.model, files, {"team": team, "recipe": str(order.judging)})
    search = remote.find_settings(bundle, payload, server=server, console=console)
    return remote.parse_answers(search), search.sentence


def _race_here(order: _Order, *, home: Path, save: Path | None, console: Console) -> Found:
    """Race on this machine. `save`: the folder for the best model, if it is wanted. Raises Usage, Infrastructure."""
    with require_extra("node"):
        from farm.rules.searches.limits import Limits
        from onnxfarm.here import find as race
        from onnxfarm.here import workbench
    try:
        space = order.space or default_space(
            order.providers, cores=race.count_physical_cores(), beside=order.extra_axes
        )
    except MatrixProblem as problem:
        raise Usage(str(problem)) from problem
    limits = Limits(**order.budgets, has_labels=order.evaluation is not None, has_tolerance=bool(space.tolerances))
    folder = save and make_folder(save, option="--save")
    deadline = time.monotonic() + 60.0 * MAX_OVERTIME * order.minutes
    with workbench.open_workbench(
        order.subject, home=home, console=console, is_late=lambda: bench.clock() > deadline
    ) as bench:
        if order.calibration is not None:
            bench.set_calibration(order.calibration)
        if order.evaluation is not None:
            bench.set_evaluation(order.evaluation, order.judging)
        save_model = None if folder is None else partial(bench.save_variant, folder=folder)
        request = race.RaceRequest(str(order.subject.model), order.goal, limits, order.minutes, save_model)
        return race.run_race(bench, space, request)


def _read_space(text: str, extra_axes: Matrix) -> Matrix:
    space = read_matrix(text, {axis: [*map(to_plain, values)] for axis, values in extra_axes.axes.items()})
    return apply_settings(space, inputs=extra_axes.inputs, tolerance=extra_axes.as_plain().get("tolerance"))


def _parse_amount(text: str, option: str, units: Mapping[str, float], example: str) -> float | None:
    """Parse a number above 0 with one of `units`, and return it in the base unit. None for empty text. Raises Usage."""
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?) ?([A-Za-z%]*)", text.strip())
    amount = float(match[1]) * units.get(match[2].lower(), 0.0) if match else 0.0
    if not 0 < amount < math.inf:
        raise Usage(f"{option} is {text[:40]!r}: give {example}.")
    return amount


def _report_answers(answers: Mapping[str, Found], sentence: str, json_file: Path | None, *, console: Console) -> None:
    """Write and print the answers by hardware. Raises Stopped if a race was stopped, GateFailed if it is undecided."""
    if json_file is not None:
        documents = [found.model_dump(mode="json", by_alias=True) for found in answers.values()]
        write_json(documents[0] if len(documents) == 1 else documents, json_file)
    for hardware, found in answers.items():
        print_lines(*([f"\n{hardware}:"] if len(answers) > 1 else []), console=console)
        show(found, console=console)
    if len(answers) > 1:
        print_lines("", sentence, console=console)
    for found in answers.values():
        if found.is_stopped:
            raise Stopped("Stopped before the end; the best so far is above.")
        if found.state not in DECIDED:
            raise GateFailed("There is no decided answer; the reason is above.")


def show(found: Found, *, console: Console) -> None:
    """Print a document `onnxfarm.find/1` for people: the best settings, dropped ones, and programs that use them.

    At most MAX_SHOWN_DROPPED dropped settings are shown. What the document does not have is left out.
    """
    console.print(Text(f"\n{found.sentence}\n", style="bold"), soft_wrap=True)
    if found.measured_with:
        print_lines(f"Measured with {found.measured_with}.", "", console=console)
    settings = make_settings_table(found)
    if settings.rows:
        print_table(settings, console=console)
    if found.left:
        dropped = make_dropped_table(found).first(MAX_SHOWN_DROPPED)
        print_lines("", f"{dropped.caption}:", console=console)
        print_table(dropped, console=console)
    for words in found.budget_costs.values():
        print_lines("", words, console=console)
    if found.python:
        programs = [*found.python.splitlines(), "", *found.javascript.splitlines()]
        print_lines("", *programs, "", f"Check it again: {found.gate}", console=console)
    cost = f"It took {found.minutes:.1f} minutes and {counted(found.launches, 'launch', 'launches')}."
    print_lines("", cost, console=console)
