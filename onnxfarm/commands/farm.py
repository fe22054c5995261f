"""`onnxfarm farm users|teams|tokens …`: who may do what on a farm, for its administrators; and backups."""

import shlex
import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from onnxfarm.commands import backups
from onnxfarm.commands.options import JsonOption
from onnxfarm.commands.retention import retention
from onnxfarm.outputs import write_plain
from onnxfarm.problems import main_guard
from onnxfarm.remote.account import ServerOption, find_account
from onnxfarm.remote.people import PeopleClient
from onnxfarm.remote.rows import Invited

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Manage a farm's people, teams and tokens; back it up."
)
users = typer.Typer(no_args_is_help=True, help="Invite people, change their roles, remove them.")
teams = typer.Typer(no_args_is_help=True, help="List and make teams, and choose where you write.")
invitations = typer.Typer(no_args_is_help=True, help="List, accept and decline invitations to teams.")
tokens = typer.Typer(no_args_is_help=True, help="List, make and close your own tokens.")
for name, group in (("users", users), ("teams", teams), ("invitations", invitations), ("tokens", tokens)):
    app.add_typer(group, name=name)
app.command()(backups.backup)
app.command()(backups.restore)
app.command()(retention)


class Role(StrEnum):
    """What a member may do: look; upload and run; manage people, nodes and channels."""

    viewer = "viewer"
    member = "member"
    admin = "admin"


class Scope(StrEnum):
    """What a token may be used for."""

    read = "read"
    write = "write"
    nodes = "nodes"
    admin = "admin"


PersonArgument = Annotated[str, typer.Argument(metavar="NAME", help="The person's name on the farm.")]
TeamOption = Annotated[str, typer.Option("--team", help="The team.", show_default="the only one that you write in")]
InvitationArgument = Annotated[int, typer.Argument(metavar="INVITATION", help="Its number, as `list` shows.")]


@users.command("list")
@main_guard()
def list_users(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List the people of your teams with their roles."""
    with PeopleClient(find_account(server)) as client:
        found = client.teams()
    if as_json:
        write_plain(found)
        return
    table = Table("team", "name", "role", "last signed in", box=None, pad_edge=False)
    for team in found:
        for member in team["members"]:
            seen = "account closed" if not member["is_open"] else (member["last_seen_at"] or "never")[:16]
            table.add_row(team["name"], member["username"], member["role"], seen.replace("T", " "))
        for waiting in team.get("invited", []):
            table.add_row(team["name"], waiting["username"], waiting["role"], "invited")
    Console(soft_wrap=True).print(table)


@users.command()
@main_guard()
def invite(
    name: PersonArgument,
    team: TeamOption = "",
    role: Annotated[Role, typer.Option(help="What they may do there.")] = Role.member,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Invite a person into a team; prints the one-time link to send to somebody new. Others have to accept."""
    with PeopleClient(find_account(server)) as client:
        found = client.team_named(team)
        invited = client.invite_person(found["id"], name, role)
    if as_json:
        write_plain(invited)
        return
    print(_said_of(invited, found["name"]), file=sys.stderr)
    if invited["sign_in_link"]:
        print("Send them this link; it signs them in once, within seven days:", file=sys.stderr)
        print(invited["sign_in_link"])


def _said_of(invited: Invited, team: str) -> str:
    if invited.get("has_to_accept"):
        return (
            f"{invited['username']} is invited to team {team} as {invited['role']} and has seven days to accept, on "
            "their page of teams or by `onnxfarm farm invitations`."
        )
    return f"{invited['username']} has the role {invited['role']} in team {team}."


@users.command()
@main_guard()
def withdraw(name: PersonArgument, team: TeamOption = "", server: ServerOption = None) -> None:
    """Withdraw an invitation that was not answered yet."""
    with PeopleClient(find_account(server)) as client:
        found = client.team_named(team)
        client.withdraw_invitation(found["id"], name)
    print(f"{name} is no longer invited to team {found['name']}.")


@users.command("role")
@main_guard()
def change_role(
    name: PersonArgument,
    role: Annotated[Role, typer.Argument(help="viewer looks, member uploads and runs, admin manages.")],
    team: TeamOption = "",
    server: ServerOption = None,
) -> None:
    """Give a member another role."""
    with PeopleClient(find_account(server)) as client:
        found = client.team_named(team)
        done = client.set_role(found["id"], name, role)
    print(f"{done['username']} now has the role {done['role']} in team {found['name']}.")


@users.command()
@main_guard()
def remove(name: PersonArgument, team: TeamOption = "", server: ServerOption = None) -> None:
    """Take a person out of a team; what they made stays."""
    with PeopleClient(find_account(server)) as client:
        found = client.team_named(team)
        client.remove_person(found["id"], name)
    print(f"{name} is no longer in team {found['name']}.")


@users.command()
@main_guard()
def link(name: PersonArgument, server: ServerOption = None) -> None:
    """Print a one-time sign-in link for somebody who is locked out (administrators)."""
    with PeopleClient(find_account(server)) as client:
        print(client.sign_in_link(name))


@users.command()
@main_guard()
def close(name: PersonArgument, server: ServerOption = None) -> None:
    """Close a person's account: their tokens and links open nothing any more (administrators)."""
    with PeopleClient(find_account(server)) as client:
        client.close_account(name)
    print(f"The account of {name} is closed; `onnxfarm farm users invite {name}` reopens it.")


@teams.command("list")
@main_guard()
def list_teams(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List your teams."""
    with PeopleClient(find_account(server)) as client:
        found = client.teams()
    if as_json:
        write_plain(found)
        return
    table = Table("team", "name", "people", "you may", box=None, pad_edge=False)
    for team in found:
        may = "manage it" if team["may_manage"] else "look or work in it"
        may += "; yours by default" if team.get("is_default") else ""
        table.add_row(str(team["id"]), team["name"], str(len(team["members"])), may)
    Console(soft_wrap=True).print(table)


@teams.command()
@main_guard()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 100 characters.")],
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a team with you as its admin (administrators)."""
    with PeopleClient(find_account(server)) as client:
        made = client.create_team(name)
    if as_json:
        write_plain(made)
        return
    command = shlex.join(["onnxfarm", "farm", "users", "invite", "NAME", "--team", made["name"]])
    print(f"Team {made['name']} is created. Invite people into it: {command}")


@teams.command()
@main_guard()
def choose(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A team in which you may upload and run.")],
    server: ServerOption = None,
) -> None:
    """Let what you write without naming a team go to one where others made you a writer, if you write in no other."""
    with PeopleClient(find_account(server)) as client:
        found = client.team_named(name)
        client.choose_team(found["id"])
    print(f"Team {found['name']} is among those that you write in without naming one.")


@invitations.command("list")
@main_guard()
def list_invitations(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List what waits for your answer."""
    with PeopleClient(find_account(server)) as client:
        found = client.invitations()
    if as_json:
        write_plain(found)
        return
    table = Table("invitation", "team", "as", "by", "until", box=None, pad_edge=False)
    for invitation in found:
        until = invitation["expires_at"][:16].replace("T", " ")
        table.add_row(str(invitation["id"]), invitation["team"], invitation["role"], invitation["by"], until)
    Console(soft_wrap=True).print(table)


@invitations.command()
@main_guard()
def accept(invitation: InvitationArgument, server: ServerOption = None) -> None:
    """Come into the team."""
    with PeopleClient(find_account(server)) as client:
        done = client.answer_invitation(invitation, "accept")
    print(f"You have the role {done['role']} in team {done['team']}.")


@invitations.command()
@main_guard()
def decline(invitation: InvitationArgument, server: ServerOption = None) -> None:
    """Stay out of the team."""
    with PeopleClient(find_account(server)) as client:
        done = client.answer_invitation(invitation, "decline")
    print(f"You declined the invitation to team {done['team']}.")


@tokens.command("list")
@main_guard()
def list_tokens(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """List your tokens, without their secrets."""
    with PeopleClient(find_account(server)) as client:
        found = client.tokens()
    if as_json:
        write_plain(found)
        return
    table = Table("token", "begins", "name", "may", "last used", "until", box=None, pad_edge=False)
    for token in found:
        until = "closed" if token["revoked_at"] else token["expires_at"][:10]
        used = (token["last_used_at"] or "never")[:16].replace("T", " ")
        table.add_row(str(token["id"]), f"{token['hint']}…", token["name"], ", ".join(token["scopes"]), used, until)
    Console(soft_wrap=True).print(table)


@tokens.command()
@main_guard()
def make(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")] = "",
    scopes: Annotated[
        list[Scope] | None, typer.Option("--scope", help="Repeat it for several.", show_default="read, write")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=365, metavar="N", help="For how long.")] = 365,
    server: ServerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token; its secret is printed once."""
    with PeopleClient(find_account(server)) as client:
        made = client.make_token(name, scopes or [Scope.read, Scope.write], days=days)
    if as_json:
        write_plain(made)
        return
    print(made["secret"])
    print(
        f"It may {', '.join(made['scopes'])}, until {made['expires_at'][:10]}. It is not shown again.", file=sys.stderr
    )


@tokens.command("close")
@main_guard()
def close_token(
    token: Annotated[int, typer.Argument(metavar="TOKEN", help="Its number, as `farm tokens list` shows.")],
    server: ServerOption = None,
) -> None:
    """Close a token now."""
    with PeopleClient(find_account(server)) as client:
        done = client.close_token(token)
    print(f"The token {done['hint']}… was revoked.")
