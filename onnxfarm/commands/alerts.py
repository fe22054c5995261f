"""`onnxfarm alerts list|show|ack|assign|snooze|…`: lists, shows and triages a farm's alerts."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from farm.contract.api.alerts import AlertOut, AlertPageOut
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.outputs import make_console, print_lines, write_json
from onnxfarm.problems import Commands, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import Client, ask_farm

app = Commands(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
LISTS = ("open", "snoozed", "infra", "resolved", "invalid", "all")
AlertArgument = Annotated[int, typer.Argument(metavar="ALERT", min=1, help="An alert's number.")]
NoteOption = Annotated[str, typer.Option(help="A note for the log.")]
ReasonOption = Annotated[str, typer.Option(help="The reason.")]


@app.command("list")
def list_alerts(
    list_name: Annotated[str, typer.Option("--list", help=f"Of {', '.join(LISTS)}.")] = "open",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """List alerts of your teams; by default those that somebody has to look at now."""
    if list_name not in LISTS:
        raise Usage(f"--list {list_name!r} is not one of {', '.join(LISTS)}.")
    with Client(find_account(server)) as client:
        alerts = client.list_rows(operations.ALERTS, params={"list": list_name})

    def format_row(alert: AlertOut) -> tuple[str, ...]:
        return str(alert.id), _format_state(alert), alert.release, alert.model, alert.node, alert.sentence

    heads = ("alert", "state", "release", "model", "node", "what")
    none = f"No {'' if list_name == 'all' else list_name + ' '}alerts."
    show_rows(alerts, heads, format_row, as_json=as_json, none=none)


def _format_state(alert: AlertOut) -> str:
    return f"{alert.state}, snoozed" if alert.is_snoozed else alert.state


@app.command()
def show(alert: AlertArgument, server: ServerOption = None, as_json: JsonOption = False) -> None:
    """Print an alert: what changed, why, since when, the work-around, and its log."""
    answer = ask_farm(server, operations.ALERT, alert=alert)
    if as_json:
        write_json(answer.json)
        return
    console = make_console()
    for line in _format_alert(answer.parsed):
        console.print(Text(line), soft_wrap=True)


@app.command()
def ack(
    alert: AlertArgument,
    note: NoteOption = "",
    assignee: Annotated[str, typer.Option(help="The assignee.", show_default="you")] = "",
    server: ServerOption = None,
) -> None:
    """Acknowledge it: somebody is looking at it."""
    _send_order(server, alert, "acknowledge", note=note, assignee=assignee)


@app.command()
def assign(
    alert: AlertArgument, assignee: Annotated[str, typer.Argument(help="A member.")], server: ServerOption = None
) -> None:
    """Assign it to a member of its team."""
    _send_order(server, alert, "assign", assignee=assignee)


@app.command()
def snooze(
    alert: AlertArgument,
    until: Annotated[str, typer.Option(help="A day or moment, e.g. 2026-12-24 or 2026-12-24T08:00Z.")] = "",
    release: Annotated[str, typer.Option(help="Until this release, or a later one, was measured.")] = "",
    server: ServerOption = None,
) -> None:
    """Snooze it until a day or a release."""
    texts = {"until": _parse_moment(until) if until else "", "release": release}
    _send_order(server, alert, "snooze", **{name: text for name, text in texts.items() if text})


@app.command()
def invalid(alert: AlertArgument, reason: ReasonOption, server: ServerOption = None) -> None:
    """Mark it as a false alert, which digests count."""
    _send_order(server, alert, "invalid", reason=reason)


@app.command()
def infra(alert: AlertArgument, reason: ReasonOption, server: ServerOption = None) -> None:
    """Mark it as caused by the farm or a machine."""
    _send_order(server, alert, "infra", reason=reason)


@app.command()
def reopen(alert: AlertArgument, note: NoteOption = "", server: ServerOption = None) -> None:
    """Open it again."""
    _send_order(server, alert, "reopen", note=note)


@app.command()
def note(
    alert: AlertArgument, text: Annotated[str, typer.Argument(help="For the log.")], server: ServerOption = None
) -> None:
    """Add a note to it and to its log."""
    _send_order(server, alert, "notes", note=text)


@app.command("bisect")
def bisect_alert(
    alert: AlertArgument,
    good: Annotated[str, typer.Option(help="The last good release.", show_default="the alert's own")] = "",
    bad: Annotated[str, typer.Option(help="A later, bad release.", show_default="the alert's own")] = "",
    server: ServerOption = None,
) -> None:
    """Let the farm look for the first bad release; `onnxfarm alerts show` has the answer."""
    bisection = ask_farm(server, operations.BISECT_ALERT, json={"good": good, "bad": bad}, alert=alert).parsed
    print_lines(f"Bisection {bisection.id} of alert {alert} is {bisection.state}; each step is one run.")


def _send_order(server: str | None, alert: int, order: str, **body: str) -> None:
    changed = ask_farm(server, operations.ORDER_ALERT, json=body, alert=alert, what=order).parsed
    latest = changed.events[-1].text if changed.events else ""
    print_lines(f"Alert {alert} is {_format_state(changed)}. {latest}".strip())


def _parse_moment(text: str) -> str:
    """Return a date or time in ISO format with its zone; UTC if the text has no zone. Raises Usage."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as problem:
        raise Usage(
            f"--until {text!r} is not a date or time: write it like 2026-12-24 or 2026-12-24T08:00Z."
        ) from problem
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _format_alert(alert: AlertPageOut) -> list[str]:
    lines = [f"Alert {alert.id}, {alert.state}: {alert.sentence}", ""]
    for symptom in alert.symptoms:
        lines.append(f"  {symptom.kind}: {symptom.text}")
        lines += [f"    {symptom.explanation}"] if symptom.explanation else []
    for investigation in alert.investigations:
        lines.append(f"  {investigation.kind.replace('_', ' ')}: {investigation.sentence or investigation.state}")
    events = [f"  {event.at:%Y-%m-%dT%H:%M} {event.kind}: {event.text}" for event in alert.events]
    return [*lines, "", *events, "", alert.url]
