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
    row = selectors.model(signed_in_user(request), model_id)
    carry_out(
        request,
        partial(services.remove_model, model=row, by=signed_in_user(request)),
        partial(describe_removed, row.name),
    )
    return _redirect_after_removal(row)


@action
def restore(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """Restore a deleted model with the versions that were hidden together with it."""
    row = selectors.model(signed_in_user(request), model_id)
    order = partial(services.restore_model, model=row, by=signed_in_user(request))
    carry_out(request, order, lambda model: f"{model.name} is restored.")
    return redirect("dashboard:model", model_id=row.pk)


@action
def note_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Save the note of a version."""
    row = selectors.version(signed_in_user(request), version_id)
    note = read_fields(request, ("note",))["note"]
    order = partial(services.edit_version_note, version=row, by=signed_in_user(request), note=note)
    carry_out(request, order, lambda version: f"The note of {version} is saved.")
    return redirect(version_address(row))


@action
def keep_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """With `kept=yes` in the form, keep a branch's version for good; else let it be deleted when its time is over."""
    row = selectors.version(signed_in_user(request), version_id)
    is_kept = request.POST.get("kept") == "yes"
    order = partial(services.keep_version, version=row, by=signed_in_user(request), is_kept=is_kept)
    carry_out(request, order, lambda version: f"{version} {'is kept' if is_kept else 'goes when its time is over'}.")
    return redirect(version_address(row))


@action
def delete_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Delete a version, or hide it if it has runs. Redirects to the model's page, or to the list of models where the
    model is gone too."""
    row = selectors.version(signed_in_user(request), version_id)
    order = partial(services.remove_version, version=row, by=signed_in_user(request))
    carry_out(request, order, partial(describe_removed, str(row)))
    return _redirect_after_removal(row.model)


@action
def restore_version(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Restore a hidden version."""
    row = selectors.version(signed_in_user(request), version_id)
    order = partial(services.restore_version, version=row, by=signed_in_user(request))
    carry_out(request, order, lambda version: f"{version} is restored.")
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
            order = partial(services.remove_model, model=row, by=user)
            carry_out(request, order, partial(describe_removed, row.name))
        else:
            labels = [*row.labels, *split_names(typed["labels"])]
            label = partial(services.edit_model, model=row, by=user, labels=labels)
            carry_out(request, label, lambda model: f"{model.name}: {', '.join(model.labels) or 'no labels'}.")
    return redirect("dashboard:models")


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
