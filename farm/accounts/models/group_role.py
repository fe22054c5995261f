"""Rules that give the groups of an identity provider roles in teams."""

from django.db import models
from django.utils import timezone

from farm.accounts.states import ROLE_CHOICES, Role


class GroupRole(models.Model):
    """A rule: people in the provider's group have this role in the team from their next sign-in on."""

    group = models.CharField(max_length=200)
    team = models.ForeignKey("accounts.Team", models.CASCADE, related_name="group_roles")
    role = models.CharField(max_length=10, choices=ROLE_CHOICES, default=Role.MEMBER)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["group", "team_id"]
        constraints = [models.UniqueConstraint(fields=["group", "team"], name="one_role_per_group_and_team")]

    def __str__(self) -> str:
        return f"{self.group}: {self.role} of {self.team}"
