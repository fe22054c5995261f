"""The client's side of teams, their people, and one's own tokens."""

from collections.abc import Sequence
from urllib.parse import quote

from onnxfarm.problems import Usage
from onnxfarm.remote import rows
from onnxfarm.remote.client import Client


class PeopleClient(Client):
    """A connection to one farm, for those who administer it."""

    def teams(self) -> list[rows.Team]:
        """The user's teams with their people."""
        return self._list(rows.Team, "/teams")

    def team_named(self, name: str) -> rows.Team:
        """One of them; when no name is given, the user's default where they manage it. Raises Usage."""
        teams = self.teams()
        fitting = [team for team in teams if (team["name"] == name if name else _is_managed_default(team))]
        if fitting:
            return fitting[0]
        managed = [team["name"] for team in teams if team["may_manage"]]
        if not name and managed:
            raise Usage(f"No team was named: give --team; you manage {', '.join(managed)}.")
        known = ", ".join(team["name"] for team in teams) or "none"
        wanted = f"There is no team “{name}” of yours" if name else "You manage no team"
        raise Usage(f"{wanted}; your teams: {known}.")

    def choose_team(self, team_id: int) -> None:
        """What the user writes without naming a team may go to this one."""
        self._request("POST", f"/teams/{team_id}/choose", json={})

    def invitations(self) -> list[rows.TeamInvitation]:
        """What waits for the user's answer."""
        return self._list(rows.TeamInvitation, "/invitations")

    def answer_invitation(self, invitation_id: int, what: str) -> rows.TeamInvitation:
        """`what`: accept or decline."""
        path = f"/invitations/{invitation_id}/{what}"
        return self._json(rows.TeamInvitation, "POST", path, json={}, is_repeatable=False)

    def withdraw_invitation(self, team_id: int, username: str) -> None:
        path = f"/teams/{team_id}/invitations/{quote(username, safe='')}"
        self._request("DELETE", path, is_repeatable=False)

    def create_team(self, name: str) -> rows.Team:
        return self._json(rows.Team, "POST", "/teams", json={"name": name}, is_repeatable=False)

    def retention(self, team_id: int) -> rows.Retention:
        """What a team keeps, and what goes next."""
        return self._json(rows.Retention, "GET", f"/teams/{team_id}/retention")

    def set_retention(self, team_id: int, **days: int | None) -> rows.Retention:
        """Sets `timings_days`, `traces_days` and `models_days`; None always keeps a kind."""
        return self._json(rows.Retention, "PUT", f"/teams/{team_id}/retention", json=dict(days))

    def invite_person(self, team_id: int, username: str, role: str) -> rows.Invited:
        """Invite a person into a team; `sign_in_link` where they are new."""
        order = {"username": username, "role": role}
        return self._json(rows.Invited, "POST", f"/teams/{team_id}/members", json=order, is_repeatable=False)

    def set_role(self, team_id: int, username: str, role: str) -> rows.Member:
        return self._json(rows.Member, "PATCH", _member(team_id, username), json={"role": role})

    def remove_person(self, team_id: int, username: str) -> None:
        """Take a person out of a team."""
        self._request("DELETE", _member(team_id, username), is_repeatable=False)

    def sign_in_link(self, username: str) -> str:
        """A one-time link for somebody who is locked out."""
        path = f"/users/{quote(username, safe='')}/sign-in-link"
        return self._json(rows.Link, "POST", path, json={}, is_repeatable=False)["sign_in_link"]

    def close_account(self, username: str) -> None:
        self._request("POST", f"/users/{quote(username, safe='')}/close", json={}, is_repeatable=False)

    def tokens(self) -> list[rows.Token]:
        """The user's own tokens."""
        return self._list(rows.Token, "/tokens")

    def make_token(self, name: str, scopes: Sequence[str], *, days: int) -> rows.NewToken:
        """A new token, with its secret."""
        asked = {"name": name, "scopes": list(scopes), "days": days}
        return self._json(rows.NewToken, "POST", "/tokens", json=asked, is_repeatable=False)

    def close_token(self, token_id: int) -> rows.Token:
        return self._json(rows.Token, "DELETE", f"/tokens/{token_id}", is_repeatable=False)


def _is_managed_default(team: rows.Team) -> bool:
    return team.get("is_default", False) and team["may_manage"]


def _member(team_id: int, username: str) -> str:
    return f"/teams/{team_id}/members/{quote(username, safe='')}"
