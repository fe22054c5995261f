"""Teams own models, runs and nodes; a membership says what a person may do there."""

from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.states import ROLE_CHOICES, WRITING_ROLES, Role

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    from farm.accounts.models.user import User

DEFAULT_QUOTA_BYTES = 200 * 1024**3
Row = TypeVar("Row", bound=models.Model)


class TeamQuerySet(models.QuerySet["Team"]):
    """Which teams a person may see, write in and manage."""

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        """Return the teams that the user is a member of; all of them for an administrator of the installation."""
        if not user.is_authenticated:
            return self.none()
        return self if user.is_superuser else self.filter(memberships__user=user)

    def writable_by(self, user: "User | AnonymousUser") -> Self:
        """Return the teams in which the user may upload and run; all for an administrator of the installation."""
        if not user.is_authenticated:
            return self.none()
        if user.is_superuser:
            return self
        return self.filter(memberships__user=user, memberships__role__in=WRITING_ROLES)

    def chosen_by(self, user: "User | AnonymousUser") -> Self:
        """Return the teams that the user joined or chose in order to upload and run, and may still write in.

        Only memberships count, also those of an administrator of the installation.
        """
        if not user.is_authenticated:
            return self.none()
        return self.filter(memberships__user=user, memberships__role__in=WRITING_ROLES, memberships__is_chosen=True)

    def managed_by(self, user: "User | AnonymousUser") -> Self:
        """Return the teams whose members, nodes and settings the user may change: those whose admin they are.

        For an administrator of the installation these are all teams.
        """
        if not user.is_authenticated:
            return self.none()
        return self if user.is_superuser else self.filter(memberships__user=user, memberships__role=Role.ADMIN)


class Team(models.Model):
    """People who share models, runs and nodes. Storage is counted and deduplicated within a team only."""

    name = models.CharField(max_length=100, unique=True)
    quota_bytes = models.PositiveBigIntegerField(default=DEFAULT_QUOTA_BYTES)
    # whether runs that a person asked for come before the farm's own on the team's nodes
    puts_people_first = models.BooleanField(default=True, db_default=True)
    # minutes that nodes may measure for it in a day, its searches and watches included; null: no limit
    daily_minutes = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = TeamQuerySet.as_manager()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class OwnedQuerySet(models.QuerySet[Row]):
    """Which rows a person may see, write and manage, as the roles in the team at the end of `team_path` allow."""

    team_path = "team"

    def visible_to(self, user: "User | AnonymousUser") -> Self:
        return self.filter(**{f"{self.team_path}__in": Team.objects.visible_to(user)})

    def writable_by(self, user: "User | AnonymousUser") -> Self:
        return self.filter(**{f"{self.team_path}__in": Team.objects.writable_by(user)})

    def managed_by(self, user: "User | AnonymousUser") -> Self:
        return self.filter(**{f"{self.team_path}__in": Team.objects.managed_by(user)})


class Membership(models.Model):
    """A person's role in a team.

    `is_chosen`: the person joined in order to write here, or chose the team later. A person who joined to view, or by a
    group, and was made a writer by others has to name the team when they upload or run.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=ROLE_CHOICES, default=Role.MEMBER)
    # whether groups of the identity provider gave the role; they then also take it away
    from_groups = models.BooleanField(default=False, db_default=False, editable=False)
    is_chosen = models.BooleanField(default=True, db_default=False, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"
