"""`onnxfarm farm users|teams|invitations|tokens|retention|backup|restore …`: a farm's people, tokens and data.

`backup` and `restore` work on the farm's own machine, the others through its API.
"""

import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from farm.contract.api.people import InvitationOut, InvitedOut, RetentionOut, Role, TeamWithMembersOut, TokenOut
from onnxfarm.commands.listing import format_minute, show_rows
from onnxfarm.commands.options import JsonOption
from onnxfarm.here.home import check_server_installed, exec_module, find_farm_home
from onnxfarm.outputs import make_table, write_json
from onnxfarm.problems import Commands, Usage
from onnxfarm.remote import operations
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.client import ApiAnswer, Client, ask_farm
from onnxfarm.remote.lookups import find_team
from onnxfarm.remote.operations import Operation

FOR_EVER = "kept"

AS_IT_IS = "as it is"
TIMINGS = f"Raw timings go so long after a run; “{FOR_EVER}”: never."
TRACES = f"Raw traces and compiled models go so long after a run; “{FOR_EVER}”: never."
MODELS = f"Models without a run go so long after an upload; “{FOR_EVER}”: never."
BRANCHES = f"What gates upload for branches goes so long after; “{FOR_EVER}”: never."
TeamOption = Annotated[str, typer.Option("--team", help="The team.", show_default="the only one that you write in")]
TimingsOption = Annotated[str, typer.Option("--timings", metavar="DAYS", help=TIMINGS, show_default=AS_IT_IS)]
TracesOption = Annotated[str, typer.Option("--traces", metavar="DAYS", help=TRACES, show_default=AS_IT_IS)]
ModelsOption = Annotated[str, typer.Option("--models", metavar="DAYS", help=MODELS, show_default=AS_IT_IS)]
# named here and not imported, because the client never imports the server
PROGRAM = "farm.config.backup_commands"

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", metavar="FOLDER", help="The farm's folder.", show_default="$ONNXFARM_HOME, else ./var"),
]
app = Commands(no_args_is_help=True, add_completion=False, help="Manage a farm's people, teams and tokens; back it up.")
users = Commands(no_args_is_help=True, help="Invite people, change their roles, remove them.")
teams = Commands(no_args_is_help=True, help="List and make teams, and choose where you write.")
invitations = Commands(no_args_is_help=True, help="List, accept and decline invitations to teams.")
tokens = Commands(no_args_is_help=True, help="List, make and close your own tokens.")
for name, group in (("users", users), ("teams", teams), ("invitations", invitations), ("tokens", tokens)):
    app.add_typer(group, name=name)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; it must not exist yet.")],
    home: HomeOption = None,
) -> None:
    """Write database, files and key of this machine's farm into one file; it may go on working."""
    _run_backup_command("backup", file, home)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `farm backup` wrote.")], home: HomeOption = None
) -> None:
    """Put a backup into an empty farm: a new folder, or a new database that $ONNXFARM_DATABASE_URL names."""
    _run_backup_command("restore", file, home)


def _run_backup_command(command: str, file: Path, home: Path | None) -> None:
    check_server_installed()
    exec_module(PROGRAM, command, str(file), "--home", str(find_farm_home(home)))


@app.command()
def retention(
    team: TeamOption = "",
    timings: TimingsOption = "",
    traces: TracesOption = "",
    models: ModelsOption = "",
    branches: Annotated[str, typer.Option(metavar="DAYS", help=BRANCHES, show_default=AS_IT_IS)] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a team keeps, what would go next and when, or set its rule; documents and verdicts stay."""
    with Client(find_account(server)) as client:
        found_team = find_team(client, team)
        answer = client.ask(operations.RETENTION, team=found_team.id)
        rule = answer.parsed
        if timings or traces or models or branches:
            days = {
                "timings_days": _parse_days(timings, rule.timings_days),
                "traces_days": _parse_days(traces, rule.traces_days),
                "models_days": _parse_days(models, rule.models_days),
                "branches_days": _parse_days(branches, rule.branches_days),
            }
            answer = client.ask(operations.SET_RETENTION, json=days, team=found_team.id)
    if as_json:
        write_json(answer.json)
        return
    _show_retention(found_team.name, answer.parsed)


def _parse_days(text: str, before: int | None) -> int | None:
    """Parse a number of days; None: for ever. Return `before` for empty text, an option not given. Raises Usage."""
    if not text:
        return before
    if text == FOR_EVER:
        return None
    if not text.isdecimal() or len(text) > 5:
        raise Usage(f"“{text}” cannot be read as a number of days; write one, or {FOR_EVER}.")
    return int(text)


def _show_retention(team: str, rule: RetentionOut) -> None:
    if rule.acts_at is None:
        print(f"Team {team} keeps everything.")
        return
    print(f"Team {team} always keeps documents and verdicts.")
    print(f"Going next, on {format_minute(rule.acts_at)} UTC:")
    table = make_table("kind", "older than", "count", "bytes")
    for going in rule.doomed:
        size = f"at most {going.bytes:,}" if going.kind == "raw timings" else f"{going.bytes:,}"
        table.add_row(going.kind, f"{going.days} days", f"{going.count:,}", size)
    Console(soft_wrap=True).print(table)
    print("Nothing has been removed by this command; until then, the rule can be changed.")


class Scope(StrEnum):
    """What a token may be used for."""

    read = "read"
    write = "write"
    nodes = "nodes"
    admin = "admin"
    gate = "gate"


PersonArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name on the farm.")]
InvitationArgument = Annotated[int, typer.Argument(metavar="INVITATION", help="Its number, as `list` shows.")]


@users.command("list")
def list_users(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the people of your teams with their roles."""
    teams = ask_farm(server, operations.TEAMS)
    people = [person for team in teams.parsed for person in _list_people(team)]
    heads = ("team", "name", "role", "last signed in")
    show_rows(ApiAnswer(teams.json, people), heads, tuple, as_json=as_json)


def _list_people(team: TeamWithMembersOut) -> Iterator[tuple[str, str, str, str]]:
    for member in team.members:
        last_seen = format_minute(member.last_seen_at) if member.last_seen_at else "never"
        yield team.name, member.username, member.role, last_seen if member.is_open else "account closed"
    for waiting in team.invited:
        yield team.name, waiting.username, waiting.role, "invited"


@users.command()
def invite(
    name: PersonArgument,
    team: TeamOption = "",
    role: Annotated[Role, typer.Option(help="What they may do there.")] = Role.MEMBER,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Invite a person into a team; prints the one-time link to send to somebody new. Others have to accept."""
    with Client(find_account(server)) as client:
        found_team = find_team(client, team)
        invitation = {"username": name, "role": role}
        answer = client.ask(operations.INVITE_PERSON, json=invitation, team=found_team.id)
    invited = answer.parsed
    if as_json:
        write_json(answer.json)
        return
    print(_describe_invitation(invited, found_team.name), file=sys.stderr)
    if invited.sign_in_link:
        print("Send them this link; it signs them in once, within seven days:", file=sys.stderr)
        print(invited.sign_in_link)


def _describe_invitation(invited: InvitedOut, team: str) -> str:
    if invited.has_to_accept:
        return (
            f"{invited.username} is invited to team {team} as {invited.role} and has seven days to accept, on "
            "their page of teams or by `onnxfarm farm invitations`."
        )
    return f"{invited.username} has the role {invited.role} in team {team}."


@users.command()
def withdraw(name: PersonArgument, team: TeamOption = "", server: ServerOption = None) -> None:
    """Withdraw an invitation that was not answered yet."""
    found_team = _change_team(server, team, operations.WITHDRAW_INVITATION, name=name)
    print(f"{name} is no longer invited to team {found_team.name}.")


@users.command("role")
def change_role(
    name: PersonArgument,
    role: Annotated[Role, typer.Argument(help="viewer looks, member uploads and runs, admin manages.")],
    team: TeamOption = "",
    server: ServerOption = None,
) -> None:
    """Give a member another role."""
    found_team = _change_team(server, team, operations.SET_ROLE, json={"role": role}, name=name)
    print(f"{name} now has the role {role} in team {found_team.name}.")


@users.command()
def remove(name: PersonArgument, team: TeamOption = "", server: ServerOption = None) -> None:
    """Take a person out of a team; what they made stays."""
    found_team = _change_team(server, team, operations.REMOVE_PERSON, name=name)
    print(f"{name} is no longer in team {found_team.name}.")


def _change_team(
    server: str | None, team: str, operation: Operation[Any], *, name: str = "", json: object = None
) -> TeamWithMembersOut:
    """Request an operation on a team, or on the person `name` in it. Return the team. Raises Usage."""
    with Client(find_account(server)) as client:
        found_team = find_team(client, team)
        client.ask(operation, json=json, team=found_team.id, name=name)
    return found_team


@users.command()
def link(name: PersonArgument, server: ServerOption = None) -> None:
    """Print a one-time sign-in link for somebody who is locked out (administrators)."""
    print(ask_farm(server, operations.MAKE_LINK, name=name).parsed.sign_in_link)


@users.command()
def close(name: PersonArgument, server: ServerOption = None) -> None:
    """Close a person's account: their tokens and links open nothing any more (administrators)."""
    ask_farm(server, operations.CLOSE_ACCOUNT, name=name)
    print(f"The account of {name} is closed; `onnxfarm farm users invite {name}` reopens it.")


@teams.command("list")
def list_teams(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List your teams."""

    def format_row(team: TeamWithMembersOut) -> tuple[str, str, str, str]:
        rights = "manage it" if team.may_manage else "look or work in it"
        rights += "; yours by default" if team.is_default else ""
        return str(team.id), team.name, str(len(team.members)), rights

    show_rows(ask_farm(server, operations.TEAMS), ("team", "name", "people", "you may"), format_row, as_json=as_json)


@teams.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 100 characters.")],
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a team with you as its admin (administrators)."""
    made = ask_farm(server, operations.CREATE_TEAM, json={"name": name})
    if as_json:
        write_json(made.json)
        return
    command = shlex.join(["onnxfarm", "farm", "users", "invite", "NAME", "--team", made.parsed.name])
    print(f"Team {made.parsed.name} is created. Invite people into it: {command}")


@teams.command()
def choose(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A team in which you may upload and run.")],
    server: ServerOption = None,
) -> None:
    """Use a team that others added you to by default. Of several such teams, you have to name one each time."""
    found_team = _change_team(server, name, operations.CHOOSE_TEAM)
    print(f"Team {found_team.name} is among those that you write in without naming one.")


@invitations.command("list")
def list_invitations(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List what waits for your answer."""

    def format_row(invitation: InvitationOut) -> tuple[str, ...]:
        until = format_minute(invitation.expires_at)
        return str(invitation.id), invitation.team, invitation.role, invitation.by, until

    heads = ("invitation", "team", "as", "by", "until")
    show_rows(ask_farm(server, operations.INVITATIONS), heads, format_row, as_json=as_json)


@invitations.command()
def accept(invitation: InvitationArgument, server: ServerOption = None) -> None:
    """Come into the team."""
    accepted = ask_farm(server, operations.ANSWER_INVITATION, invitation=invitation, what="accept").parsed
    print(f"You have the role {accepted.role} in team {accepted.team}.")


@invitations.command()
def decline(invitation: InvitationArgument, server: ServerOption = None) -> None:
    """Stay out of the team."""
    declined = ask_farm(server, operations.ANSWER_INVITATION, invitation=invitation, what="decline").parsed
    print(f"You declined the invitation to team {declined.team}.")


@tokens.command("list")
def list_tokens(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List your tokens, without their secrets."""

    def format_row(token: TokenOut) -> tuple[str, ...]:
        until = "closed" if token.revoked_at else f"{token.expires_at:%Y-%m-%d}"
        used = format_minute(token.last_used_at) if token.last_used_at else "never"
        return str(token.id), f"{token.hint}…", token.name, _describe_scopes(token), used, until

    heads = ("token", "begins", "name", "may", "last used", "until")
    show_rows(ask_farm(server, operations.TOKENS), heads, format_row, as_json=as_json)


def _describe_scopes(token: TokenOut) -> str:
    return ", ".join(token.scopes) + (f" models of {token.team}" if token.team else "")


@tokens.command()
def make(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")] = "",
    scopes: Annotated[
        list[Scope] | None, typer.Option("--scope", help="Repeat it for several.", show_default="read, write")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="For how long.")] = 365,
    team: Annotated[
        str, typer.Option(metavar="NAME", help="With --scope gate: whose models.", show_default="the only one")
    ] = "",
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token; its secret is printed once."""
    request = {"name": name, "scopes": scopes or [Scope.read, Scope.write], "days": days, "team": team}
    answer = ask_farm(server, operations.MAKE_TOKEN, json=request)
    if as_json:
        write_json(answer.json)
        return
    print(answer.parsed.secret)
    may, until = _describe_scopes(answer.parsed), f"{answer.parsed.expires_at:%Y-%m-%d}"
    print(f"It may {may}, until {until}. It is not shown again.", file=sys.stderr)


@tokens.command("close")
def close_token(
    token: Annotated[int, typer.Argument(metavar="TOKEN", help="Its number, as `farm tokens list` shows.")],
    server: ServerOption = None,
) -> None:
    """Close a token now."""
    closed = ask_farm(server, operations.CLOSE_TOKEN, token=token).parsed
    print(f"The token {closed.hint}… was revoked.")
