"""What people write about a model: a description, and labels that watches and searches go by."""

from collections.abc import Iterable

from farm.accounts.models import User
from farm.accounts.refusals import Invalid, NotAllowed
from farm.accounts.selectors import can_write
from farm.accounts.services import record
from farm.registry.models import Model

MOST_LABELS = 20
LABEL_LENGTH = 40
DESCRIPTION_LENGTH = 5000


def describe_model(
    *, model: Model, by: User, description: str | None = None, labels: Iterable[str] | None = None
) -> Model:
    """Change a model's description or labels; None leaves them. Raises NotAllowed and Invalid."""
    if not can_write(by, team=model.team):
        raise NotAllowed(f"You may look at the models of team “{model.team.name}” but not change them.")
    if description is not None:
        if len(description) > DESCRIPTION_LENGTH or "\x00" in description:
            raise Invalid(f"A description has at most {DESCRIPTION_LENGTH} characters.", code="bad_description")
        model.description = description.strip()
    if labels is not None:
        model.labels = _checked(labels)
    model.save(update_fields=["description", "labels"])
    record(verb="model described", subject=model.name, actor=by, team=model.team, facts={"labels": model.labels})
    return model


def _checked(labels: Iterable[str]) -> list[str]:
    """Labels without repeats, in their order."""
    kept = list(dict.fromkeys(label.strip() for label in labels))
    bad = [label for label in kept if not label or len(label) > LABEL_LENGTH or not label.isprintable()]
    if bad or len(kept) > MOST_LABELS:
        raise Invalid(
            f"A model has at most {MOST_LABELS} labels of 1 to {LABEL_LENGTH} printable characters.", code="bad_label"
        )
    return kept
