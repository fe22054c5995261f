"""Asking for a look into what quantisation did to a variant."""

from django.db import transaction

from farm.accounts.models import User
from farm.accounts.selectors import can_write
from farm.base.refusals import Conflict, NotAllowed
from farm.registry.models import Variant, VariantReport
from farm.registry.services.products import ensure_report
from farm.registry.states import MakingState
from farm.rules.cells import recipes


def order_variant_report(*, variant: Variant, by: User) -> VariantReport:
    """Errors by layer and scales by weight of an 8-bit variant, made by a `prepare` worker; asked twice, made once.

    Raises NotAllowed without the right to measure in its team, and Conflict for a variant that is not there or has
    nothing to look into.
    """
    team = variant.artifact.team
    if not can_write(by, team=team):
        raise NotAllowed(f"You can view the models of team “{team.name}” but not analyse them.")
    if variant.state != MakingState.READY or variant.recipe.precision not in recipes.EIGHT_BITS:
        raise Conflict("Only an 8-bit variant that is ready can be analysed.", code="no_report")
    with transaction.atomic():
        return ensure_report(variant)
