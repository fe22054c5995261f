"""One model of a name in a team: whoever gives a model a name decides about it alone."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from farm.accounts.models import Team
from farm.base.refusals import Conflict
from farm.registry.models import Model


@contextmanager
def sole_name(model: Model, name: str, *, refusal: str, hint: str = "") -> Iterator[None]:
    """A transaction in which the model may take the name: uploads and other orders about names of the team wait.

    Raises Conflict with these words where another model has the name.
    """
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=model.team_id)
        if is_taken(model, name):
            raise Conflict(refusal, code="name_taken", hint=hint)
        yield


def is_taken(model: Model, name: str) -> bool:
    """Whether another model of the team has the name."""
    return Model.objects.kept().filter(team=model.team_id, name=name).exclude(pk=model.pk).exists()
