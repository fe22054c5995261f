"""Roles of people in a team, what a token may do, and what a public link may show."""

from django.db import models


class Role(models.TextChoices):
    """What a member may do in a team: look; upload and run; manage members, nodes and settings."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


class Scope(models.TextChoices):
    """What a token may be used for. `write` does not include `admin`; every scope includes `read`."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class ShareKind(models.TextChoices):
    """What a public link may show."""

    RUN = "run"
    CELL = "cell"
    MODEL = "model"
    COMPARE = "compare"


# roles that may upload, start and cancel
WRITING_ROLES = (Role.MEMBER, Role.ADMIN)
