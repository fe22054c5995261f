"""Labelled data of a version, given with the upload or later; a `prepare` worker looks at them before any node does."""

from django.db import transaction

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import record
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.contract.evaluation import EvaluationRecipe
from farm.registry.models import Blob, EvaluationData, Version
from farm.registry.services.messages import CHECK_EVALUATION, hint
from farm.registry.services.removal import remove_unused
from farm.registry.services.room import check_quota, keep_blob
from farm.registry.states import MakingState, VersionState
from farm.registry.storage import Draft
from farm.rules.quality import evaluation


def read_recipe(text: str) -> EvaluationRecipe:
    """The recipe of a form's field; empty is top1. Raises Invalid."""
    try:
        return evaluation.parse_recipe(text or "top1")
    except evaluation.RecipeProblem as problem:
        raise Invalid(
            str(problem), code="bad_recipe", hint="Recipes are like top1, softmax+mse or top1@scores."
        ) from problem


def keep_evaluation(*, version: Version, blob: Blob, recipe: EvaluationRecipe) -> EvaluationData:
    """The version's labelled data, ordered to be looked at unless they are the ones it has. Call in a transaction."""
    known = EvaluationData.objects.filter(version=version).first()
    plain = recipe.model_dump(mode="json")
    is_same = known is not None and (known.given_id, known.recipe_json) == (blob.pk, plain)
    if known is not None and is_same and known.state != MakingState.FAILED:
        return known
    if known is not None:
        known.delete()
    made = EvaluationData.objects.create(version=version, given=blob, recipe_json=plain)
    if known is not None:
        remove_unused([known.given_id, known.data_id])
    hint(CHECK_EVALUATION, made.pk)
    return made


def add_evaluation(*, version: Version, by: User, draft: Draft, recipe: str = "") -> EvaluationData:
    """Labelled data for a version that has none, or other ones. Runs that go on judge with them from their next block.

    Raises NotAllowed, Conflict for a rejected version, Invalid for a recipe or file that is none, TooLarge (quota).
    """
    team = version.model.team
    try:
        if not can_write(by, team=team):
            raise NotAllowed(f"You can view the models of team “{team.name}” but not add data to them.")
        if version.state == VersionState.REJECTED:
            raise Conflict(f"{version} was rejected; upload the model again with its data.", code="rejected")
        how = read_recipe(recipe)
        if not draft.name.lower().endswith(".npz"):
            raise Invalid(
                "Labelled data come as an .npz of the inputs by name and `labels`.",
                code="bad_evaluation",
                hint="Write it with numpy.savez.",
            )
        with transaction.atomic():
            team = Team.objects.select_for_update().get(pk=team.pk)
            check_quota(team, {draft.sha256: draft.bytes})
            made = keep_evaluation(version=version, blob=keep_blob(team, draft), recipe=how)
            record(
                verb="evaluation data given", subject=str(version), actor=by, team=team, facts={"sha256": draft.sha256}
            )
    finally:
        draft.discard()
    return made
