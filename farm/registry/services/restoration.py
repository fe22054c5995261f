"""Taking back that a model or version was deleted, where runs kept it."""

from contextlib import AbstractContextManager

from farm.accounts.models import User
from farm.accounts.services import record
from farm.registry.models import Model, Version
from farm.registry.services.names import sole_name
from farm.registry.services.removal import may_remove


def restore_model(*, model: Model, by: User) -> Model:
    """The model and the versions that were deleted with it are there again. Raises NotAllowed, and Conflict where
    another model has its name by now."""
    may_remove(model, by)
    with _name_again(model):
        Model.objects.filter(pk=model.pk).update(removed_at=None)
        if model.removed_at is not None:
            model.versions.filter(removed_at=model.removed_at).update(removed_at=None)
        model.removed_at = None
        record(verb="model restored", subject=model.name, actor=by, team=model.team)
    return model


def restore_version(*, version: Version, by: User) -> Version:
    """The version is there again, and so is its model. Raises as `restore_model` does."""
    may_remove(version.model, by)
    with _name_again(version.model):
        Model.objects.filter(pk=version.model_id).update(removed_at=None)
        Version.objects.filter(pk=version.pk).update(removed_at=None)
        version.removed_at = version.model.removed_at = None
        record(verb="version restored", subject=str(version), actor=by, team=version.model.team)
    return version


def _name_again(model: Model) -> AbstractContextManager[None]:
    return sole_name(
        model,
        model.name,
        refusal=f"There is another model “{model.name}” in team “{model.team.name}” by now.",
        hint="Rename that one first, then restore this one.",
    )
