"""People who sign in."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person. What they may see follows from their teams.

    `vouched_at`: when they last signed in through the identity provider; None for a person who never did.
    """

    vouched_at = models.DateTimeField(null=True, blank=True, editable=False)
