"""Labelled data for a version that is in the registry already."""

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from dashboard.views.access import action, person
from farm.base.refusals import Refusal
from farm.registry import selectors, services
from farm.registry.intake import StoredUpload

if TYPE_CHECKING:
    from farm.registry.models import Version


@csrf_exempt
@action
def add(request: HttpRequest, version_id: int) -> HttpResponseBase:
    """Give a version labelled data. As on the upload page, files are hashed while they arrive and a refusal may come
    before the form was read: the check of its token is made inside."""
    version = selectors.version(person(request), version_id)
    try:
        return _add(request, version)
    except Refusal as refusal:
        messages.error(request, str(refusal))
    except MultiPartParserError:
        messages.error(request, "The form could not be read: choose the file again.")
    return _back(version)


@csrf_protect
def _add(request: HttpRequest, version: "Version") -> HttpResponseBase:
    files = [file for file in request.FILES.getlist("evaluation") if isinstance(file, StoredUpload)]
    if not files:
        messages.error(request, "No file was chosen: choose an .npz with inputs and labels.")
        return _back(version)
    recipe = request.POST.get("recipe", "")
    services.add_evaluation(version=version, by=person(request), draft=files[0].draft, recipe=recipe)
    messages.success(request, "Checking the labelled data; this takes a few seconds.")
    return _back(version)


def _back(version: "Version") -> HttpResponseBase:
    return redirect(f"{reverse('dashboard:model', args=[version.model_id])}?version={version.number}")
