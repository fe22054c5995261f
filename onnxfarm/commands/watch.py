"""`onnxfarm watch add | list | run | pause | resume | remove`: a farm's standing orders."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from onnxfarm.commands.options import JsonOption, TeamOption
from onnxfarm.commands.submit import read_matrix
from onnxfarm.outputs import say, table_of, write_plain
from onnxfarm.problems import GateFailed, Infrastructure, TimedOut, Usage, main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.rows import Round, Watch
from onnxfarm.remote.runs import shown, standing_of
from onnxfarm.remote.watches import WatchClient
from onnxfarm.screen import console_for

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
WatchArgument = Annotated[str, typer.Argument(metavar="WATCH", help="A watch's number or name.")]
MatrixOption = Annotated[
    Path | None,
    typer.Option("--matrix", metavar="FILE", help="A matrix without `runtime`; - is stdin.", show_default="the farm's"),
]
RuleOption = Annotated[
    str,
    typer.Option(
        metavar="JSON",
        help='What alerts, e.g. {"latency": 0.1, "kinds": ["slower", "parity"]}.',
        show_default="latency beyond 5 %, and every other kind",
    ),
]
ScheduleOption = Annotated[
    str, typer.Option(help="Five fields of cron, UTC, e.g. '0 3 * * 1'.", show_default="no times")
]
ChannelOption = Annotated[list[int] | None, typer.Option(help="A channel's number; repeat.", show_default="the team's")]
POLL_S = 2.0


@app.command()
@main_guard()
def add(  # noqa: PLR0913  every option of the command
    name: Annotated[str, typer.Argument(help="What the watch is called.")],
    reference: Annotated[str, typer.Option(help="The pinned reference release, e.g. 1.29.0.")],
    model: Annotated[list[str] | None, typer.Option(help="A model's number or name; repeat.")] = None,
    label: Annotated[str, typer.Option(help="Every model of the registry that has this label.")] = "",
    matrix: MatrixOption = None,
    rule: RuleOption = "",
    distribution: Annotated[str, typer.Option(help="The package to watch on the index.")] = "onnxruntime",
    schedule: ScheduleOption = "",
    on_release: Annotated[bool, typer.Option(help="Measure when a release appears.")] = True,
    on_version: Annotated[bool, typer.Option(help="Measure when a model gets a new version.")] = True,
    prereleases: Annotated[bool, typer.Option(help="Pre-releases count as releases.")] = False,
    channel: ChannelOption = None,
    team: TeamOption = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a watch: its models are measured again when something new appears."""
    order: dict[str, object] = {
        "name": name,
        "reference": reference,
        "models": [int(one) if one.isdecimal() else one for one in model or []],
        "label": label,
        "distribution": distribution,
        "schedule": schedule,
        "on_release": on_release,
        "on_version": on_version,
        "with_prereleases": prereleases,
        "team": team,
        "channels": channel or [],
    }
    if (declared := read_matrix(matrix)) is not None:
        order["matrix"] = declared
    if rule:
        order["rule"] = _rule(rule)
    with WatchClient(find_account(server)) as client:
        made = client.create_watch(order)
    say(f"Watch {made['id']} of team {made['team']}: {made['url']}")
    write_plain(made) if as_json else print(made["id"])


@app.command("list")
@main_guard()
def list_watches(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the watches of your teams."""
    with WatchClient(find_account(server)) as client:
        watches = client.watches()
    if as_json:
        write_plain(watches)
        return
    console = console_for()
    if not watches:
        console.print("No watches yet. Make one: onnxfarm watch add NAME --model MODEL --reference 1.29.0")
        return
    table = table_of("watch", "name", "team", "models", "reference", "when", "state")
    for one in watches:
        table.add_row(str(one["id"]), one["name"], one["team"], _models(one), one["reference"], _when(one), _state(one))
    console.print(table)


@app.command()
@main_guard()
def run(
    watch: WatchArgument,
    candidate: Annotated[str, typer.Option(help="The release to judge.", show_default="the newest")] = "",
    baseline: Annotated[str, typer.Option(help="The release to compare with.", show_default="the reference")] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the rounds to their end; exit 1 when one alerts.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES", help="With --wait, stop waiting after this many minutes.", show_default="never"
        ),
    ] = None,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a watch's models now, as a pipeline would.

    With --wait, exit code 0: nothing to look at; 1: an alert; 3: it could not be measured; 4: it took too long.
    """
    asked = {key: text for key, text in (("candidate", candidate), ("baseline", baseline)) if text}
    with WatchClient(find_account(server)) as client:
        found = client.watch_named(watch)
        rounds = client.call_watch(found["id"], **asked)
        for one in rounds:
            say(f"Round {one['id']}: {one['model']} v{one['version']}, {one['old']} → {one['new']}")
        if wait:
            rounds = _followed(client, found["id"], {one["id"] for one in rounds}, minutes=timeout)
    if as_json:
        write_plain(rounds)
    if wait:
        _judge(rounds)


@app.command()
@main_guard()
def pause(watch: WatchArgument, server: ServerOption = None) -> None:
    """Pause a watch: it starts nothing by itself until it is resumed."""
    _switch(watch, server, is_active=False)


@app.command()
@main_guard()
def resume(watch: WatchArgument, server: ServerOption = None) -> None:
    """Resume a paused watch."""
    _switch(watch, server, is_active=True)


@app.command()
@main_guard()
def remove(
    watch: WatchArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Also remove its rounds and alerts.")] = False,
    server: ServerOption = None,
) -> None:
    """Remove a watch with its rounds and alerts; its runs stay."""
    with WatchClient(find_account(server)) as client:
        found = client.watch_named(watch)
        if not yes:
            raise Usage(
                f"Removing watch {found['id']}, “{found['name']}”, also removes its rounds and alerts: add --yes."
            )
        client.remove_watch(found["id"])
    say(f"Watch {found['id']} is removed.")


def _switch(watch: str, server: str | None, *, is_active: bool) -> None:
    with WatchClient(find_account(server)) as client:
        found = client.watch_named(watch)
        client.change_watch(found["id"], is_active=is_active)
    say(f"Watch {found['id']} {'is resumed' if is_active else 'is paused'}.")


def _followed(
    client: WatchClient, watch_id: int, wanted: set[int], *, minutes: float | None, poll_s: float = POLL_S
) -> list[Round]:
    """The rounds once all of them are judged; the first that is not says how far its run is. Raises TimedOut."""
    limit = None if minutes is None else time.monotonic() + 60.0 * minutes
    said: dict[int, str] = {}
    console = console_for(stderr=True)
    with shown(console) as show:
        while True:
            rounds = client.rounds(watch_id, wanted)
            for one in rounds:
                if said.get(one["id"]) != one["state"]:
                    said[one["id"]] = one["state"]
                    text = f"Round {one['id']}: {one['state']}{': ' + one['sentence'] if one['sentence'] else ''}"
                    say(text, console=console)
            still_open = [one for one in rounds if one["state"] != "judged"]
            if not still_open:
                return rounds
            if limit is not None and time.monotonic() > limit:
                raise TimedOut(f"The rounds were not judged within {minutes:g} minutes; they continue on the farm.")
            measuring = [run for one in still_open if (run := one.get("confirming") or one.get("run"))]
            if measuring:
                show(standing_of(client.run(str(measuring[0]))))
            time.sleep(poll_s)


def _judge(rounds: list[Round]) -> None:
    for outcome, problem in (("alert", GateFailed), ("infra", Infrastructure)):
        found = [one["sentence"] for one in rounds if one["outcome"] == outcome]
        if found:
            raise problem(found[0])


def _rule(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise Usage(f'--rule is not JSON ({problem}): write it like {{"latency": 0.1}}.') from problem
    if not isinstance(found, dict):
        raise Usage('--rule is not an object: write it like {"latency": 0.1}.')
    return found


def _models(watch: Watch) -> str:
    names = [one["name"] for one in watch["models"]] + ([f"label {watch['label']}"] if watch["label"] else [])
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _when(watch: Watch) -> str:
    parts = ["release"] * watch["on_release"] + ["version"] * watch["on_version"]
    return ", ".join([*parts, *([watch["schedule"]] if watch["schedule"] else [])]) or "on request"


def _state(watch: Watch) -> str:
    return watch["problem"] or ("watching" if watch["is_active"] else "paused")
