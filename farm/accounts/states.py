"""Roles of people in a team, what a token may do, and what a public link may show."""

from django.db import models


class Role(models.TextChoices):
    """What a member may do in a team: look; upload and run; manage members, nodes and settings."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


class Scope(models.TextChoices):
    """What a token may be used for. Every scope includes `read`; `write` includes neither of the two below it.

    `nodes`: invite, approve and order nodes. `admin`: tokens and channels, and with `write` nodes too, because whoever
    makes tokens can make one of any scope.
    """

    READ = "read"
    WRITE = "write"
    NODES = "nodes"
    ADMIN = "admin"


class ShareKind(models.TextChoices):
    """What a public link may show."""

    RUN = "run"
    CELL = "cell"
    MODEL = "model"
    COMPARE = "compare"
    HARDWARE = "hardware"


class InvitationState(models.TextChoices):
    """What became of an invitation into a team. Only `open` ones are answered, and only until they expire."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


# roles that may upload, start and cancel
WRITING_ROLES = (Role.MEMBER, Role.ADMIN)
