"""`onnxfarm release RELEASE`: shows on which models and nodes of a farm a release is slower or wrong."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from farm.contract.cells import Runtime
from farm.rules.runtimes.distributions import DEFAULT_DISTRIBUTION
from onnxfarm.commands.listing import format_minute
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import make_console, make_table, write_json
from onnxfarm.problems import Usage, exit_with_problem
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption
from onnxfarm.remote.client import ask_farm


@exit_with_problem()
def release(
    version: Annotated[str, typer.Argument(metavar="RELEASE", help="Such as 1.32.0, or PACKAGE==VERSION.")],
    against: Annotated[str, typer.Option(help="An older version.", show_default="the one before")] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a release's report card: models by node beside an older release, work-arounds, and what is still open."""
    runtime = Runtime.of(version if "==" in version else f"{DEFAULT_DISTRIBUTION}=={version}")
    if not runtime.version:
        raise Usage(f"{version!r} is no release: write it like 1.32.0 or onnxruntime==1.32.0.")
    place = {"distribution": runtime.distribution or DEFAULT_DISTRIBUTION, "version": runtime.version}
    answer = ask_farm(server, operations.RELEASE, params={"against": against} if against else None, **place)
    if as_json:
        write_json(answer.json)
        return
    card, console = answer.parsed, make_console()
    table = make_table("model", "node", "what", "run")
    for model in card.models:
        for node in model.nodes:
            table.add_row(model.name, node.node, node.verdict, str(node.run or ""))
    _print(console, [card.headline, card.because, f"{card.release} beside {card.against or 'nothing yet'}"])
    if table.row_count:
        console.print(table)
    lines = [f"{work_around.model}: {work_around.sentence}\n{work_around.code}" for work_around in card.work_arounds]
    if card.open:
        last, least = (card.ends_at, "") if card.ends_at else (card.ends_at_least, "at least ")
        until = f"{least}until {format_minute(last)} UTC" if last else "nobody can tell yet until when"
        lines.append(f"Still being measured: {', '.join(waiting.model for waiting in card.open)}; {until}")
    _print(console, [*lines, card.url])


def _print(console: Console, lines: Iterable[str]) -> None:
    for line in filter(None, lines):
        console.print(Text(line), soft_wrap=True)
