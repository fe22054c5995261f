"""`onnxfarm plan MODEL --matrix FILE`: shows what a farm would measure, without starting it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from farm.contract.api.runs import OpenPlanOut
from farm.rules.planning.plans import Plan, PlannedBlock, RefusedPoint
from farm.rules.planning.time_left import format_about
from farm.rules.presenting import refusals
from farm.rules.wording.numbers import counted
from onnxfarm.commands import options
from onnxfarm.commands.feed_options import apply_feed_options
from onnxfarm.commands.submit import MatrixOption, read_matrix
from onnxfarm.exit_codes import judge_plan
from onnxfarm.model_files import check_files_exist
from onnxfarm.outputs import make_table, print_lines, write_json
from onnxfarm.problems import exit_with_problem
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.uploads import Bundle, upload_and_inspect

# at most this many of the points that are refused for the same reason are named
NAMED_POINTS = 4


@exit_with_problem()
def plan(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx or a .zip; it is uploaded and inspected.")],
    matrix: MatrixOption = None,
    pre: options.PreOption = False,
    wish: Annotated[
        str | None,
        typer.Option(metavar="CHANGE", help="A change to detect, e.g. 3%: shows the rounds and minutes it takes."),
    ] = None,
    shape: options.ShapeOption = None,
    input_: options.InputOption = None,
    inputs: options.InputsOption = None,
    prompts: options.PromptsOption = None,
    scenario: options.ScenarioOption = None,
    memory_limit_mb: options.MemoryLimitOption = None,
    source: options.SourceOption = None,
    team: options.TeamOption = "",
    server: ServerOption = None,
    as_json: options.JsonOption = False,
    axes: options.AxesOption = None,
) -> None:
    """Show cells, blocks, minutes, the smallest change each comparison will see, and each refused point's reason.

    Exit code 1: nothing of it can be measured; 2: nor would the farm take it.
    """
    bundle = Bundle(model, {"inputs": inputs, "prompts": prompts}, {"team": team}, source)
    # a missing file is refused before a missing account or farm
    _ = bundle.model_files
    check_files_exist({"--inputs": inputs, "--prompts": prompts})
    declared = apply_feed_options(
        read_matrix(matrix), shape=shape, inputs=input_, scenario=scenario, memory_limit_mb=memory_limit_mb, pre=pre
    )
    stderr = Console(stderr=True)
    with Client(find_account(server)) as client:
        version = upload_and_inspect(client, bundle, console=stderr)
        with stderr.status("Planning …") as status:
            answer = client.plan(
                version.id, declared, detect=wish, progress=lambda order: status.update(_describe_waiting(order))
            )
    if as_json:
        write_json(answer.json)
    else:
        show_plan(answer.parsed, console=Console())
    judge_plan(answer.parsed)


def _describe_waiting(order: OpenPlanOut) -> str:
    is_single = order.points == 1
    waiting, planned = ("waits", "is") if is_single else ("wait", "are")
    doing = f"{waiting} to be planned" if order.state == "pending" else f"{planned} being planned"
    return f"{counted(order.points, 'point')} {doing} …"


def show_plan(plan: Plan, *, console: Console) -> None:
    """Print a plan for people: its size, its blocks, and why points were refused.

    Points refused for the same reason share a line, which at most NAMED_POINTS of them follow.
    """
    size = f"{counted(plan.cells, 'cell')} in {counted(len(plan.blocks), 'block')}"
    time = f", {format_about(60.0 * plan.minutes)} on one node" if plan.blocks else ""
    console.print(f"{size}{time}.", highlight=False)
    if plan.blocks:
        console.print(_make_block_table(plan.blocks))
    for block in plan.blocks:
        if block.wish:
            print_lines(f"{block.id}: {block.wish.text}", console=console)
    _show_refused(plan.refused, console=console)


def _show_refused(refused: Sequence[RefusedPoint], *, console: Console) -> None:
    for reason, alike in refusals.group_by_reason(refused).items():
        points = _describe_point(alike[0]) if len(alike) == 1 else f"{len(alike)} points"
        print_lines(f"⊘ {points}: {reason.text}", console=console)
        print_lines(*(f"    {way_out}" for way_out in refusals.list_ways_out(alike)), console=console)
        for point in alike[:NAMED_POINTS] if len(alike) > 1 else ():
            print_lines(f"    {_describe_point(point)}", console=console)
        if len(alike) > NAMED_POINTS:
            print_lines(f"    and {len(alike) - NAMED_POINTS} more: --json lists them", console=console)


def _make_block_table(blocks: Sequence[PlannedBlock]) -> Table:
    table = make_table("block", "cells", "rounds", "minutes", "nodes", "smallest detectable change")
    for block in blocks:
        changes = [size for compared in block.comparisons if (size := compared.smallest_detectable)]
        rounds = sorted({number for number in (block.min_rounds, block.max_rounds) if number})
        smallest = ""
        if changes:
            texts = dict.fromkeys(f"{100 * size:.2g}" for size in (min(changes), max(changes)))
            smallest = f"{'–'.join(texts)} %"
        table.add_row(
            block.id,
            " ".join(arm.id for arm in block.arms),
            "–".join(map(str, rounds)),
            f"{block.minutes:.1f}",
            str(len(block.nodes)),
            smallest,
        )
    return table


def _describe_point(point: RefusedPoint) -> str:
    return " ".join(f"{axis}={value}" for axis, value in point.labels.items()) or point.id
