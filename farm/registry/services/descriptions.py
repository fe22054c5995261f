"""Changes the names, descriptions and labels of models, and the notes of versions; the audit log gets each change."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext

from django.db import transaction

from farm.accounts.models import Team, User
from farm.accounts.selectors import can_write
from farm.accounts.services import record
from farm.base.refusals import Conflict, Invalid, NotAllowed
from farm.registry.models import Model, Version

NAME_LENGTH = 100
NOTE_LENGTH = 500
MAX_LABELS = 20
LABEL_LENGTH = 40
DESCRIPTION_LENGTH = 5000


@contextmanager
def reserve_model_name(model: Model, name: str, *, refusal: str, hint: str = "") -> Iterator[None]:
    """Open a transaction in which the model may take the name; uploads and renames in the team wait for its end.

    Raises Conflict with the texts `refusal` and `hint` where another model of the team has the name. Deleted models do
    not count.
    """
    with transaction.atomic():
        Team.objects.select_for_update().get(pk=model.team_id)
        if is_name_taken(model, name):
            raise Conflict(refusal, code="name_taken", hint=hint)
        yield


def is_name_taken(model: Model, name: str) -> bool:
    return Model.objects.not_removed().filter(team=model.team_id, name=name).exclude(pk=model.pk).exists()


def edit_model(
    *,
    model: Model,
    by: User,
    name: str | None = None,
    description: str | None = None,
    labels: Iterable[str] | None = None,
) -> Model:
    """Change a model's name, description or labels; None leaves them as they are. Old runs keep the old name.

    `labels` replace the present ones. Raises NotAllowed for a person who may not write in the team, Invalid for a bad
    name, description or label, and Conflict for the name of another model.
    """
    _check_may_change(model, by)
    old_name = model.name
    if name is not None:
        model.name = clean_name(name)
    if description is not None:
        if len(description) > DESCRIPTION_LENGTH or "\x00" in description:
            raise Invalid(f"A description has at most {DESCRIPTION_LENGTH} characters.", code="bad_description")
        model.description = description.strip()
    if labels is not None:
        model.labels = _check_labels(labels)
    facts = {"labels": model.labels, **({"was": old_name} if old_name != model.name else {})}
    refusal = f"There is another model “{model.name}” in team “{model.team.name}”; choose another name."
    with reserve_model_name(model, model.name, refusal=refusal) if old_name != model.name else nullcontext():
        model.save(update_fields=["name", "description", "labels"])
        record(verb="model described", subject=model.name, actor=by, team=model.team, facts=facts)
    return model


def edit_version_note(*, version: Version, by: User, note: str) -> Version:
    """Replace the note of a version; a version of a branch or a deleted one may be changed too.

    The audit log names the version but not the note. Raises NotAllowed for a person who may not write in the team, and
    Invalid for a note that is too long or has a NUL.
    """
    _check_may_change(version.model, by)
    version.note = clean_note(note)
    version.save(update_fields=["note"])
    record(verb="version described", subject=str(version), actor=by, team=version.model.team)
    return version


def keep_version(*, version: Version, by: User, is_kept: bool) -> Version:
    """Protect a branch's version from retention, or end the protection with `is_kept=False`; log either.

    Raises NotAllowed for a person who may not write in the team, and Conflict for a version of the model's main line.
    """
    _check_may_change(version.model, by)
    if not version.branch:
        raise Conflict(f"{version} is no branch's: it stays until somebody deletes it.", code="no_branch")
    version.is_kept = is_kept
    version.save(update_fields=["is_kept"])
    verb = "version kept" if is_kept else "version kept no longer"
    record(verb=verb, subject=str(version), actor=by, team=version.model.team)
    return version


def _check_may_change(model: Model, by: User) -> None:
    if not can_write(by, team=model.team):
        raise NotAllowed(f"You can view the models of team “{model.team.name}” but not change them.")


def clean_name(name: str) -> str:
    """Return a model's name without spaces around it. Raises Invalid where it is empty, too long or not printable."""
    name = name.strip()
    if not name or len(name) > NAME_LENGTH or not name.isprintable():
        raise Invalid(f"A model's name has 1 to {NAME_LENGTH} printable characters.", code="bad_name")
    return name


def clean_note(note: str) -> str:
    """Return a version's note without spaces around it. Raises Invalid where it is too long or has a NUL."""
    if len(note) > NOTE_LENGTH or "\x00" in note:
        raise Invalid(f"A note has at most {NOTE_LENGTH} characters; this one has {len(note)}.", code="bad_note")
    return note.strip()


def _check_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels without repeats, in their order. Raises Invalid for too many labels, or a bad one."""
    checked = list(dict.fromkeys(label.strip() for label in labels))
    bad = [label for label in checked if not label or len(label) > LABEL_LENGTH or not label.isprintable()]
    if bad or len(checked) > MAX_LABELS:
        raise Invalid(
            f"A model has at most {MAX_LABELS} labels of 1 to {LABEL_LENGTH} printable characters.", code="bad_label"
        )
    return checked
