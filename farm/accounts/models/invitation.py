"""Invitations of people who have an account: they become members of the team when they accept."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from farm.accounts.models.team import Membership
from farm.accounts.states import ROLE_CHOICES, InvitationState, Role


class InvitationQuerySet(models.QuerySet["Invitation"]):
    """Selects the invitations that can still be accepted or declined."""

    def answerable(self) -> Self:
        """Return the invitations that are open, have not expired, and whose inviter may still invite to the team.

        The inviter's account has to be open, and they have to be an admin of the team or administer the installation.
        """
        admin = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("invited_by"), role=Role.ADMIN)
        return self.filter(
            Q(invited_by__is_superuser=True) | Exists(admin),
            invited_by__is_active=True,
            state=InvitationState.OPEN,
            expires_at__gt=timezone.now(),
        )


class Invitation(models.Model):
    """An offer to a person to join a team in a role, made by an admin of that team."""

    team = models.ForeignKey("accounts.Team", models.CASCADE, related_name="invitations")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=ROLE_CHOICES)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    state = models.CharField(max_length=9, choices=InvitationState.choices, default=InvitationState.OPEN)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "user"], condition=Q(state=InvitationState.OPEN), name="one_open_invitation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} into {self.team} as {self.role}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()

    def end(self, state: InvitationState) -> bool:
        """Move from open to `state` and return True. Return False and change nothing where it cannot be answered."""
        answerable = Invitation.objects.answerable().filter(pk=self.pk).values("pk")
        if not Invitation.objects.filter(pk__in=answerable, state=InvitationState.OPEN).update(state=state):
            return False
        self.state = state
        return True
