"""Nodes that measure for other teams than their own, by consent of both."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from farm.accounts.models import Membership, Team
from farm.fleet.states import LENDING_ARROWS, LendingState

if TYPE_CHECKING:
    from farm.accounts.models import User


class LendingQuerySet(models.QuerySet["Lending"]):
    """Queries for lendings."""

    def in_force(self) -> Self:
        """Filter to agreed lendings whose offerer still belongs to the receiving team."""
        return self.filter(state=LendingState.AGREED).offered_by_members()

    def offered_by_members(self) -> Self:
        """Filter to lendings whose offerer is an active member of the receiving team, or an active superuser."""
        member = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("asked_by"))
        return self.filter(Q(asked_by__is_superuser=True) | Exists(member), asked_by__is_active=True)


class Lending(models.Model):
    """A node that was offered to another team. It measures for that team once an admin of it has agreed.

    The team's models go to the node: so it is the team that consents, and may take it back at any time.
    """

    node = models.ForeignKey("fleet.Node", models.CASCADE, related_name="lendings")
    team = models.ForeignKey(Team, models.CASCADE, related_name="lendings")
    state = models.CharField(max_length=8, choices=LendingState.choices, default=LendingState.ASKED)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    answered_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True, default="")

    objects = LendingQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["node", "team"], name="one_lending_per_team")]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"{self.node} for {self.team}"

    @property
    def is_lapsed(self) -> bool:
        """Whether it was declined because its offerer left the receiving team, and not by that team."""
        return self.state == LendingState.DECLINED and bool(self.reason)

    @property
    def words(self) -> str:
        """The state of the lending in one sentence."""
        if self.state == LendingState.ASKED:
            return f"Waits for an admin of {self.team} to agree."
        if self.state == LendingState.AGREED:
            return f"Measures for {self.team}; {self.answered_by or 'a former user'} agreed."
        return self.reason or f"{self.answered_by or 'An admin'} of {self.team} declined."

    def move(self, state: LendingState, *, by: "User | None", reason: str = "") -> bool:
        """Change the state as LENDING_ARROWS allows, with who answered it and why, and return True.

        Return False, with nothing changed, where it does not allow it. Nothing is logged here.
        """
        changes = {"state": state, "answered_by": by, "answered_at": timezone.now(), "reason": reason}
        if not Lending.objects.filter(pk=self.pk, state__in=LENDING_ARROWS[state]).update(**changes):
            return False
        for name, value in changes.items():
            setattr(self, name, value)
        return True
