"""The identity provider of this farm, where it has one."""

from django.conf import settings

from farm.accounts.openid.registration import Registration
from farm.base.refusals import Missing


def get_registration() -> Registration:
    """Return the farm's registration. Raises Missing where the farm has no identity provider."""
    found: Registration | None = settings.OPENID
    if found is None:
        raise Missing("This farm has no identity provider.", hint="People sign in by a one-time link.")
    return found
