"""Reads the claims of an identity provider: who a person is, and the groups they are in."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from farm.base.refusals import Invalid

# the longest subject that the column `LinkedAccount.uid` holds
MAX_SUBJECT: Final = 191
MAX_NAME: Final = 100
MAX_GROUPS: Final = 5_000
MAX_GROUP: Final = 200


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as the provider describes them. `groups` is None where it sent no claim about groups."""

    subject: str
    name: str
    groups: frozenset[str] | None


def read_identity(claims: Mapping[str, object], *, groups_claim: str, provider: str) -> Identity:
    """Read who signed in, with a name of letters, digits and @ . + - _ that need not be free on this farm.

    The name is the first usable of the claims preferred_username, email (before its @), name and sub, with `-` for
    other characters, and cut to MAX_NAME. `groups_claim` names the claim with the groups, and may be a dotted path;
    without that claim the groups are None. A single text is one group; names longer than MAX_GROUP are left out.

    Raises Invalid for claims without a valid subject, or with groups that are not a list of at most MAX_GROUPS names.
    """
    subject = claims.get("sub")
    if not is_valid_subject(subject):
        raise Invalid(
            f"{provider} did not say who signed in: its “sub” has to be a text of 1 to {MAX_SUBJECT} characters."
        )
    return Identity(subject, _choose_name(claims, subject), _read_groups(claims, groups_claim, provider))


def is_valid_subject(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_SUBJECT and value.isprintable()


def _choose_name(claims: Mapping[str, object], subject: str) -> str:
    """Choose a name for pages, of letters, digits and @ . + - _ alone."""
    mail = claims.get("email")
    mail_user = mail.partition("@")[0] if isinstance(mail, str) else ""
    for candidate in (claims.get("preferred_username"), mail_user, claims.get("name"), subject):
        if isinstance(candidate, str):
            signs = (sign if sign.isalnum() or sign in "@.+-_" else "-" for sign in candidate[:MAX_NAME])
            if name := "".join(signs).strip("-"):
                return name
    return "person"


def _read_groups(claims: Mapping[str, object], claim: str, provider: str) -> frozenset[str] | None:
    """Return the groups' names as the provider writes them; names too long for any rule are left out."""
    value: object = claims
    # a dot leads into an object, as Keycloak's realm_access.roles; a claim that is named with its dots comes first
    for part in [claim] if claim in claims else claim.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return None
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_GROUPS or not all(isinstance(group, str) for group in value):
        raise Invalid(f"{provider} sent “{claim}” as something other than a list of at most {MAX_GROUPS:,} names.")
    return frozenset(group for group in value if 0 < len(group) <= MAX_GROUP)
