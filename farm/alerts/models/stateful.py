"""Rows whose state changes by conditional updates."""

from django.db import models


class StatefulModel(models.Model):
    """A row with a `state` that several workers may try to change."""

    class Meta:
        abstract = True

    def move(self, state: str, *, was: str, **changes: object) -> bool:
        """Move from the state `was` to `state`, and write the columns `changes` too, in one conditional UPDATE.

        Return False, with nothing written, where the row in the database is not in the state `was` any more.
        """
        changes["state"] = state
        moved = type(self)._default_manager.filter(pk=self.pk, **{"state": was}).update(**changes)
        if moved:
            for name, value in changes.items():
                setattr(self, name, value)
        return bool(moved)
