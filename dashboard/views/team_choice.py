"""The field “Team” of a form: what is offered, and what is chosen before the reader chooses."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from farm.accounts.selectors import default_team, teams_writable_by

if TYPE_CHECKING:
    from farm.accounts.models import Team, User


class TeamChoice(NamedTuple):
    """`chosen`: a team's name; empty where the reader has to choose."""

    teams: list["Team"]
    chosen: str


def team_choice(user: "User", *, typed: str = "", among: "Iterable[Team] | None" = None) -> TeamChoice:
    """The teams in which the reader writes, or those given; chosen is what was typed, else the reader's default."""
    teams = list(teams_writable_by(user) if among is None else among)
    default = default_team(user)
    wanted = typed or (default.name if default else "")
    return TeamChoice(teams, wanted if wanted in {team.name for team in teams} else "")
