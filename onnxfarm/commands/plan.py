"""`onnxfarm plan MODEL --matrix FILE`: what would be measured, without starting it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from onnxfarm.commands.feed_options import with_feed
from onnxfarm.commands.options import InputOption, InputsOption, ShapeOption
from onnxfarm.commands.submit import MatrixOption, read_matrix, uploaded_version
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client


@main_guard()
def plan(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="An .onnx or a .zip; it is uploaded and inspected.")],
    matrix: MatrixOption = None,
    wish: Annotated[
        str | None, typer.Option(metavar="CHANGE", help="A change you want to see, e.g. 3%: its rounds and minutes.")
    ] = None,
    shape: ShapeOption = None,
    input_: InputOption = None,
    inputs: InputsOption = None,
    server: ServerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show cells, blocks, minutes, the smallest change each comparison will see, and each refused point's reason."""
    declared = with_feed(read_matrix(matrix), shape=shape, inputs=input_)
    with Client(find_account(server)) as client:
        version = uploaded_version(
            client, model, console=Console(stderr=True), roles={"inputs": inputs} if inputs else None
        )
        answer = client.plan(version["id"], declared, wish=wish)
    if as_json:
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        show_plan(answer, console=Console())


def show_plan(answer: dict[str, Any], *, console: Console) -> None:
    """Print a plan for people."""
    blocks, refused = answer.get("blocks") or [], answer.get("refused") or []
    if answer.get("problem"):
        console.print(f"⊘ {answer['problem']}", highlight=False, markup=False)
    minutes = float(answer.get("minutes") or 0.0)
    count = answer.get("cells")
    cells = count if isinstance(count, int) else len(count or [])
    console.print(f"{cells} cells in {len(blocks)} blocks, about {minutes:.0f} min on one node.", highlight=False)
    if blocks:
        console.print(_blocks(blocks))
    for block in blocks:
        if block.get("wish"):
            console.print(f"{block['id']}: {block['wish']['text']}", highlight=False, markup=False, soft_wrap=True)
    for point in refused:
        reason = point.get("reason") or {}
        console.print(f"⊘ {_point(point)}: {reason.get('text', '')}", highlight=False, markup=False)


def _blocks(blocks: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("block", "cells", "rounds", "minutes", "nodes", "smallest change"):
        table.add_column(head)
    for block in blocks:
        seen = [c["smallest_detectable"] for c in block.get("comparisons") or [] if c.get("smallest_detectable")]
        rounds = sorted({int(block[key]) for key in ("min_rounds", "max_rounds") if block.get(key)})
        table.add_row(
            str(block.get("id", "")),
            " ".join(arm["id"] for arm in block.get("arms") or []),
            "–".join(str(number) for number in rounds),
            f"{float(block.get('minutes') or 0.0):.1f}",
            str(len(block.get("nodes") or [])),
            f"{100 * min(seen):.2g}–{100 * max(seen):.2g} %" if seen else "",
        )
    return table


def _point(point: dict[str, Any]) -> str:
    labels = point.get("labels") or {}
    return " ".join(f"{axis}={value}" for axis, value in labels.items()) or str(point.get("id", ""))
