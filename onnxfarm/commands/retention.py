"""`onnxfarm farm retention`: what a team keeps and for how long; shows what would go, and removes nothing itself."""

from typing import Annotated

import typer
from rich.console import Console

from farm.contract.api.people import RetentionOut
from onnxfarm.commands.listing import minute
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import table_of, write_plain
from onnxfarm.problems import Usage, main_guard
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client
from onnxfarm.remote.lookups import team_named

KEPT = "kept"


AS_IT_IS = "as it is"
TIMINGS = f"Raw timings go so long after a run; “{KEPT}”: never."
TRACES = f"Raw traces and compiled models go so long after a run; “{KEPT}”: never."
MODELS = f"Models without a run go so long after an upload; “{KEPT}”: never."
TimingsOption = Annotated[str, typer.Option("--timings", metavar="DAYS", help=TIMINGS, show_default=AS_IT_IS)]
TracesOption = Annotated[str, typer.Option("--traces", metavar="DAYS", help=TRACES, show_default=AS_IT_IS)]
ModelsOption = Annotated[str, typer.Option("--models", metavar="DAYS", help=MODELS, show_default=AS_IT_IS)]


@main_guard()
def retention(
    team: Annotated[str, typer.Option("--team", help="The team.", show_default="the only one that you write in")] = "",
    timings: TimingsOption = "",
    traces: TracesOption = "",
    models: ModelsOption = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a team keeps, what would go next and when, or set its rule; documents and verdicts stay."""
    with Client(find_account(server)) as client:
        found = team_named(client, team)
        answer = client.ask(operations.RETENTION, team=found.id)
        rule = answer.shape
        if timings or traces or models:
            days = {
                "timings_days": _days(timings, rule.timings_days),
                "traces_days": _days(traces, rule.traces_days),
                "models_days": _days(models, rule.models_days),
            }
            answer = client.ask(operations.SET_RETENTION, json=days, team=found.id)
    if as_json:
        write_plain(answer.plain)
        return
    _show(found.name, answer.shape)


def _days(said: str, before: int | None) -> int | None:
    """Raises Usage for what is no number of days."""
    if not said or said == KEPT:
        return None if said else before
    if not said.isdecimal() or len(said) > 5:
        raise Usage(f"“{said}” cannot be read as a number of days; write one, or {KEPT}.")
    return int(said)


def _show(team: str, rule: RetentionOut) -> None:
    if rule.acts_at is None:
        print(f"Team {team} keeps everything.")
        return
    print(f"Team {team} always keeps documents and verdicts.")
    print(f"Going next, on {minute(rule.acts_at)} UTC:")
    table = table_of("kind", "older than", "count", "bytes")
    for going in rule.doomed:
        size = f"at most {going.bytes:,}" if going.kind == "raw timings" else f"{going.bytes:,}"
        table.add_row(going.kind, f"{going.days} days", f"{going.count:,}", size)
    Console(soft_wrap=True).print(table)
    print("Nothing has been removed by this command; until then, the rule can be changed.")
