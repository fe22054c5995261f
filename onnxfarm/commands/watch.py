"""`onnxfarm watch add|list|run|pause|resume|remove`: manages watches, whose models a farm measures again by itself."""

import json
import time
from collections.abc import Collection
from typing import Annotated, cast

import typer

from farm.contract.api.alerts import RoundOut, WatchOut
from onnxfarm.commands.listing import show_rows
from onnxfarm.commands.options import JsonOption, TeamOption
from onnxfarm.commands.submit import TimeoutOption, read_matrix
from onnxfarm.outputs import make_console, print_lines, write_json
from onnxfarm.problems import Commands, GateFailed, Infrastructure, TimedOut, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import ApiAnswer, Client, ask_farm
from onnxfarm.remote.lookups import find_watch
from onnxfarm.remote.runs import make_progress, open_progress

app = Commands(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
WatchArgument = Annotated[str, typer.Argument(metavar="WATCH", help="A watch's number or name.")]
MatrixOption = Annotated[
    str | None,
    typer.Option(
        "--matrix",
        metavar="FILE",
        help="A matrix without `runtime`, - for stdin, or JSON text.",
        show_default="the farm's",
    ),
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
    pre: Annotated[
        bool, typer.Option("--pre", help="Release candidates and development builds count as releases.")
    ] = False,
    compare_versions: Annotated[bool, typer.Option(help="Compare each new version with the one before.")] = False,
    channel: ChannelOption = None,
    team: TeamOption = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a watch: its models are measured again when something new appears."""
    order: dict[str, object] = {
        "name": name,
        "reference": reference,
        "models": [int(named) if named.isdecimal() else named for named in model or []],
        "label": label,
        "distribution": distribution,
        "schedule": schedule,
        "on_release": on_release,
        "on_version": on_version,
        "with_prereleases": pre,
        "compares_versions": compare_versions,
        "team": team,
        "channels": channel or [],
    }
    if (declared := read_matrix(matrix)) is not None:
        order["matrix"] = declared
    if rule:
        order["rule"] = _parse_rule(rule)
    answer = ask_farm(server, operations.CREATE_WATCH, json=order)
    watch = answer.parsed
    print_lines(f"Watch {watch.id} of team {watch.team}: {watch.url}")
    write_json(answer.json) if as_json else print(watch.id)


@app.command("list")
def list_watches(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the watches of your teams."""

    def format_row(watch: WatchOut) -> tuple[str, ...]:
        models = [model.name for model in watch.models] + ([f"label {watch.label}"] if watch.label else [])
        model_names = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
        events = ["release"] * watch.on_release + ["version"] * (watch.on_version or watch.compares_versions)
        when = ", ".join([*events, *filter(None, [watch.schedule])]) or "on request"
        state = watch.problem or ("watching" if watch.is_active else "paused")
        return str(watch.id), watch.name, watch.team, model_names, watch.reference, when, state

    with Client(find_account(server)) as client:
        answer = client.list_rows(operations.WATCHES)
    none = "No watches yet. Make one: onnxfarm watch add NAME --model MODEL --reference 1.29.0"
    heads = ("watch", "name", "team", "models", "reference", "when", "state")
    show_rows(answer, heads, format_row, as_json=as_json, none=none)


@app.command()
def run(
    watch: WatchArgument,
    candidate: Annotated[str, typer.Option(help="The release to judge.", show_default="the newest")] = "",
    baseline: Annotated[str, typer.Option(help="The release to compare with.", show_default="the reference")] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the rounds to their end; exit 1 when one alerts.")
    ] = False,
    timeout: TimeoutOption = None,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a watch's models now, as a pipeline would.

    With --wait, exit code 0: nothing to look at; 1: an alert; 3: it could not be measured; 4: it took too long.
    """
    releases = {key: text for key, text in (("candidate", candidate), ("baseline", baseline)) if text}
    with Client(find_account(server)) as client:
        watched = find_watch(client, watch)
        rounds = client.ask(operations.CALL_WATCH, json=releases, watch=watched.id)
        for opened in rounds.parsed:
            print_lines(f"Round {opened.id}: {opened.model} v{opened.version}, {opened.old} → {opened.new}")
        if wait:
            rounds = _follow_rounds(client, watched.id, {opened.id for opened in rounds.parsed}, minutes=timeout)
    if as_json:
        write_json(rounds.json)
    if wait:
        for outcome, problem in (("alert", GateFailed), ("infra", Infrastructure)):
            if sentences := [each.sentence for each in rounds.parsed if each.outcome == outcome]:
                raise problem(sentences[0])


@app.command()
def pause(watch: WatchArgument, server: ServerOption = None) -> None:
    """Pause a watch: it starts nothing by itself until it is resumed."""
    _set_active(watch, server, is_active=False)


@app.command()
def resume(watch: WatchArgument, server: ServerOption = None) -> None:
    """Resume a paused watch."""
    _set_active(watch, server, is_active=True)


@app.command()
def remove(
    watch: WatchArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Also remove its rounds and alerts.")] = False,
    server: ServerOption = None,
) -> None:
    """Remove a watch with its rounds and alerts; its runs stay."""
    with Client(find_account(server)) as client:
        removed = find_watch(client, watch)
        if not yes:
            raise Usage(
                f"Removing watch {removed.id}, “{removed.name}”, also removes its rounds and alerts: add --yes."
            )
        client.ask(operations.REMOVE_WATCH, watch=removed.id)
    print_lines(f"Watch {removed.id} is removed.")


def _set_active(watch: str, server: str | None, *, is_active: bool) -> None:
    with Client(find_account(server)) as client:
        switched = find_watch(client, watch)
        client.ask(operations.CHANGE_WATCH, json={"is_active": is_active}, watch=switched.id)
    print_lines(f"Watch {switched.id} {'is resumed' if is_active else 'is paused'}.")


def _follow_rounds(
    client: Client, watch_id: int, round_ids: set[int], *, minutes: float | None, poll_s: float = POLL_S
) -> ApiAnswer[list[RoundOut]]:
    """Follow rounds until all are judged, and return them. Shows the progress of the first run that is still open.

    Raises TimedOut after `minutes`; None: no limit.
    """
    deadline = None if minutes is None else time.monotonic() + 60.0 * minutes
    printed: dict[int, str] = {}
    console = make_console(stderr=True)
    with open_progress(console) as show:
        while True:
            answer = _read_rounds(client, watch_id, round_ids)
            for round_ in answer.parsed:
                if printed.get(round_.id) != round_.state:
                    printed[round_.id] = round_.state
                    print_lines(
                        f"Round {round_.id}: {round_.state}{': ' + round_.sentence if round_.sentence else ''}",
                        console=console,
                    )
            still_open = [round_ for round_ in answer.parsed if round_.state != "judged"]
            if not still_open:
                return answer
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut(f"The rounds were not judged within {minutes:g} minutes; they continue on the farm.")
            measuring = [run for round_ in still_open if (run := round_.confirming or round_.run)]
            if measuring:
                show(make_progress(client.call(operations.RUN, run=measuring[0])))
            time.sleep(poll_s)


def _read_rounds(client: Client, watch_id: int, round_ids: Collection[int]) -> ApiAnswer[list[RoundOut]]:
    """Return these rounds of a watch, newest first. Raises Infrastructure if one of them was deleted."""
    rows: list[tuple[object, RoundOut]] = []
    for page in client.iterate_pages(operations.ROUNDS, watch=watch_id):
        plain = cast(list[object], page.json)
        rows += [pair for pair in zip(plain, page.parsed, strict=True) if pair[1].id in round_ids]
        if len(rows) == len(round_ids):
            return ApiAnswer([plain for plain, _ in rows], [shape for _, shape in rows])
    gone = len(round_ids) - len(rows)
    raise Infrastructure(
        f"{gone} of {len(round_ids)} rounds are gone: was the watch or a model deleted in the meantime?"
    )


def _parse_rule(text: str) -> dict[str, object]:
    try:
        rule = json.loads(text)
    except ValueError as problem:
        raise Usage(f'--rule is not JSON ({problem}): write it like {{"latency": 0.1}}.') from problem
    if not isinstance(rule, dict):
        raise Usage('--rule is not an object: write it like {"latency": 0.1}.')
    return rule
