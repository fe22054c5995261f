"""Roles of people in a team (`Role`), scopes of tokens, kinds of public links, and states of invitations."""

from django.db import models

from farm.contract.api.people import Role

__all__ = ["ALL_OF_A_PERSON", "ROLE_CHOICES", "WRITING_ROLES", "InvitationState", "Role", "Scope", "ShareKind"]


class Scope(models.TextChoices):
    """What a token may be used for. Every scope but `gate` includes `read`; `write` includes none of those below it.

    `nodes`: invite, approve and order nodes. `admin`: tokens and channels, and with `write` nodes too, because whoever
    makes tokens can make one of any scope. `gate`: stands alone, for a single team: upload what a branch makes of its
    models, measure that, and read the runs that it started.
    """

    READ = "read"
    WRITE = "write"
    NODES = "nodes"
    ADMIN = "admin"
    GATE = "gate"


# the scopes of a token that may do whatever its person may do
ALL_OF_A_PERSON = (Scope.READ, Scope.WRITE, Scope.NODES, Scope.ADMIN)


class ShareKind(models.TextChoices):
    """What a public link may show."""

    RUN = "run"
    CELL = "cell"
    MODEL = "model"
    COMPARE = "compare"
    HARDWARE = "hardware"


class InvitationState(models.TextChoices):
    """States of an invitation into a team. Only open ones can be answered, and only until they expire."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


ROLE_CHOICES = [(role.value, role.value.title()) for role in Role]
# roles that may upload, start and cancel
WRITING_ROLES = (Role.MEMBER, Role.ADMIN)
# how the audit log names a backup of the whole farm
BACKED_UP = "farm backed up"
