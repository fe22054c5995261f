"""Rows whose states follow each other."""

from django.db import models


class Moving(models.Model):
    """A row with a `state`."""

    class Meta:
        abstract = True

    def move(self, state: str, *, was: str, **changes: object) -> bool:
        """One conditional UPDATE. False: somebody else was first."""
        changes["state"] = state
        moved = type(self)._default_manager.filter(pk=self.pk, **{"state": was}).update(**changes)
        if moved:
            for name, value in changes.items():
                setattr(self, name, value)
        return bool(moved)
