"""`onnxfarm plan MODEL --matrix FILE`: what would be measured, without starting it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from farm.rules.wording.numbers import counted
from onnxfarm.commands.feed_options import with_feed
from onnxfarm.commands.options import (
    AxesOption,
    InputOption,
    InputsOption,
    JsonOption,
    MemoryLimitOption,
    PromptsOption,
    ScenarioOption,
    ShapeOption,
    SourceOption,
    TeamOption,
)
from onnxfarm.commands.submit import MatrixOption, read_matrix
from onnxfarm.model_files import refuse_missing
from onnxfarm.outputs import say, table_of, write_plain
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.rows import Block, OpenPlan, Plan, Point
from onnxfarm.remote.uploads import Bundle, uploaded


@main_guard()
def plan(  # noqa: PLR0913  every option of the command
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx or a .zip; it is uploaded and inspected.")],
    matrix: MatrixOption = None,
    wish: Annotated[
        str | None,
        typer.Option(metavar="CHANGE", help="A change to detect, e.g. 3%: shows the rounds and minutes it takes."),
    ] = None,
    shape: ShapeOption = None,
    input_: InputOption = None,
    inputs: InputsOption = None,
    prompts: PromptsOption = None,
    scenario: ScenarioOption = None,
    memory_limit_mb: MemoryLimitOption = None,
    source: SourceOption = None,
    team: TeamOption = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
    axes: AxesOption = None,
) -> None:
    """Show cells, blocks, minutes, the smallest change each comparison will see, and each refused point's reason."""
    bundle = Bundle(model, {"inputs": inputs, "prompts": prompts}, {"team": team}, source)
    # before anything that has to be there first: an account, a farm
    _ = bundle.files
    refuse_missing({"--inputs": inputs, "--prompts": prompts})
    declared = with_feed(
        read_matrix(matrix),
        shape=shape,
        inputs=input_,
        scenario=scenario,
        memory_limit_mb=memory_limit_mb,
    )
    aside = Console(stderr=True)
    with Client(find_account(server)) as client:
        version = uploaded(client, bundle, console=aside)
        with aside.status("Planning …") as status:
            answer = client.plan(
                version["id"], declared, wish=wish, progress=lambda order: status.update(_waiting(order))
            )
    if as_json:
        write_plain(answer)
    else:
        show_plan(answer, console=Console())


def _waiting(order: OpenPlan) -> str:
    doing = "wait to be planned" if order["state"] == "pending" else "are being planned"
    return f"{counted(order['points'], 'point')} {doing} …"


def show_plan(answer: Plan, *, console: Console) -> None:
    """Print a plan for people."""
    blocks, refused = answer.get("blocks") or [], answer.get("refused") or []
    if answer.get("problem"):
        say(f"⊘ {answer['problem']}", console=console)
    minutes = float(answer.get("minutes") or 0.0)
    size = f"{counted(int(answer.get('cells') or 0), 'cell')} in {counted(len(blocks), 'block')}"
    console.print(f"{size}, about {minutes:.0f} min on one node.", highlight=False)
    if blocks:
        console.print(_blocks(blocks))
    for block in blocks:
        if wish := block.get("wish"):
            say(f"{block['id']}: {wish['text']}", console=console)
    for point in refused:
        say(f"⊘ {_point(point)}: {point['reason']['text'] if point.get('reason') else ''}", console=console)


def _blocks(blocks: list[Block]) -> Table:
    table = table_of("block", "cells", "rounds", "minutes", "nodes", "smallest change")
    for block in blocks:
        seen = [size for one in block.get("comparisons") or [] if (size := one.get("smallest_detectable"))]
        rounds = sorted({number for number in (block.get("min_rounds"), block.get("max_rounds")) if number})
        table.add_row(
            str(block.get("id", "")),
            " ".join(arm["id"] for arm in block.get("arms") or []),
            "–".join(str(number) for number in rounds),
            f"{float(block.get('minutes') or 0.0):.1f}",
            str(len(block.get("nodes") or [])),
            f"{100 * min(seen):.2g}–{100 * max(seen):.2g} %" if seen else "",
        )
    return table


def _point(point: Point) -> str:
    labels = point.get("labels") or {}
    return " ".join(f"{axis}={value}" for axis, value in labels.items()) or str(point.get("id", ""))
