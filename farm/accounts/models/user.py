"""People who sign in."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. What they may see follows from their teams.

    `vouched_at`: when the identity provider last let them in; None for somebody who has never come that way.
    """

    vouched_at = models.DateTimeField(null=True, blank=True, editable=False)
