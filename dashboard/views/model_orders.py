"""Actions on models and versions: edit, label, delete, restore, add labelled data. Most redirect to the page of the
model or version, which shows a message or the refusal. A missing field of a form is empty."""

from functools import partial
from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from dashboard.reading.removals import describe_removal, describe_removed
from dashboard.reading.runs import version_address
from dashboard.views.access import action, carry_out, form_page, read_fields, signed_in_user, split_names
from dashboard.views.lists import MAX_CHOSEN, read_row_numbers
from dashboard.views.models import UNREADABLE_FORM, render_model
from farm.base.refusals import NotAllowed, Refusal
from farm.registry import selectors, services
from farm.registry.upload_handler import StoredUpload

if TYPE_CHECKING:
    from farm.registry.models import Model, Version


# the field of the form at which a refusal is shown, by its code
FIELD_OF_CODE = {"bad_description": "description", "bad_label": "labels"}


@action
def edit(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Change a model's name, labels and description, all three at once, and redirect to its page. A refusal is shown at
    its field, and the typed texts are kept. Raises NotAllowed where the reader may not change the model."""
    row = selectors.model(signed_in_user(request), model_id)
    typed = read_fields(request, ("name", "labels", "description"))
    try:
        services.edit_model(
            model=row,
            by=signed_in_user(request),
            name=typed["name"],
            description=typed["description"],
            labels=split_names(typed["labels"]),
        )
    except NotAllowed:
        # such readers see no form in which to show the refusal
        raise
    except Refusal as refusal:
        errors = {FIELD_OF_CODE.get(refusal.code, "name"): str(refusal)}
        again = selectors.model(signed_in_user(request), model_id)
        return render_model(request, again, status=refusal.status, edited=typed, edit_errors=errors)
    messages.success(request, f"{row.name} is saved.")
    return redirect("dashboard:model", model_id=row.pk)


@action
def delete(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Delete a model: versions without runs are deleted permanently, measured versions are hidden with their runs. A
    message says what was done. Redirects to the model's page if it still exists, else to the list of models."""
    user = signed_in_user(request)
    row = selectors.model(user, model_id)
    carry_out(request, services.remove_model, partial(describe_removed, row.name), model=row, by=user)
    return _redirect_after_removal(row)


@action
def restore(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Restore a deleted model with the versions that were hidden together with it."""
    user = signed_in_user(request)
    row = selectors.model(user, model_id)
    carry_out(request, services.restore_model, lambda model: f"{model.name} is restored.", model=row, by=user)
    return redirect("dashboard:model", model_id=row.pk)


@action
def note_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Save the note of a version."""
    user, note = signed_in_user(request), read_fields(request, ("note",))["note"]
    row = selectors.version(user, version_id)
    carry_out(
        request, services.edit_version_note, lambda _: f"The note of {row} is saved.", version=row, by=user, note=note
    )
    return redirect(version_address(row))


@action
def keep_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """With `kept=yes` in the form, keep a branch's version for good; else let it be deleted when its time is over."""
    user, is_kept = signed_in_user(request), request.POST.get("kept") == "yes"
    row = selectors.version(user, version_id)
    fate = "is kept" if is_kept else "goes when its time is over"
    carry_out(request, services.keep_version, lambda _: f"{row} {fate}.", version=row, by=user, is_kept=is_kept)
    return redirect(version_address(row))


@action
def delete_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Delete a version, or hide it if it has runs. Redirects to the model's page, or to the list of models where the
    model is gone too."""
    user = signed_in_user(request)
    row = selectors.version(user, version_id)
    carry_out(request, services.remove_version, partial(describe_removed, str(row)), version=row, by=user)
    return _redirect_after_removal(row.model)


@action
def restore_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Restore a hidden version."""
    user = signed_in_user(request)
    row = selectors.version(user, version_id)
    carry_out(request, services.restore_version, lambda version: f"{version} is restored.", version=row, by=user)
    return redirect(version_address(row))


@form_page
def change_chosen(request: HttpRequest) -> HttpResponseBase:
    """Show the form for the models that were selected in the list, the first MAX_CHOSEN. A POST adds labels to each, or
    with `what=delete` deletes each. A refusal of a model does not stop the others, and the list is shown with a message
    for each. Raises Missing for a model that the reader may not see; without models a POST shows the form again."""
    user = signed_in_user(request)
    given = request.POST if request.method == "POST" else request.GET
    rows = [selectors.model(user, number) for number in read_row_numbers(given, "models", most=MAX_CHOSEN)]
    if request.method != "POST" or not rows:
        lines = [{"model": row, "words": describe_removal(selectors.estimate_removal(row))} for row in rows]
        return render(request, "dashboard/models_chosen.html", {"models": lines})
    typed = read_fields(request, ("what", "labels"))
    for row in rows:
        if typed["what"] == "delete":
            carry_out(request, services.remove_model, partial(describe_removed, row.name), model=row, by=user)
        else:
            labels = [*row.labels, *split_names(typed["labels"])]
            carry_out(request, services.edit_model, _describe_labels, model=row, by=user, labels=labels)
    return redirect("dashboard:models")


def _describe_labels(model: "Model") -> str:
    return f"{model.name}: {', '.join(model.labels) or 'no labels'}."


def _redirect_after_removal(model: "Model") -> HttpResponseBase:
    is_there = type(model).objects.filter(pk=model.pk).exists() if model.pk else False
    return redirect("dashboard:model", model_id=model.pk) if is_there else redirect("dashboard:models")


@csrf_exempt
@action
def add_evaluation(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Add labelled data to a version, of which only the first file is used, and the field `recipe`; redirect to the
    version, with a message where nothing was added. The data are checked later.

    As on the upload page, files are hashed while they arrive, so a refusal may come before the form was read. Therefore
    the CSRF token is checked in `_add`.
    """
    version = selectors.version(signed_in_user(request), version_id)
    try:
        return _add(request, version)
    except Refusal as refusal:
        messages.error(request, str(refusal))
    except UNREADABLE_FORM:
        messages.error(request, "The form could not be read: choose one file, and send it again.")
    return redirect(version_address(version))


@csrf_protect
def _add(request: HttpRequest, version: "Version") -> HttpResponseBase:
    files = [file for file in request.FILES.getlist("evaluation") if isinstance(file, StoredUpload)]
    if not files:
        messages.error(request, "No file was chosen: choose an .npz with inputs and labels.")
        return redirect(version_address(version))
    recipe = request.POST.get("recipe", "")
    services.add_evaluation(version=version, by=signed_in_user(request), draft=files[0].draft, recipe=recipe)
    messages.success(request, "Checking the labelled data; this takes a few seconds.")
    return redirect(version_address(version))
