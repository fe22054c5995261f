"""The owner's limits on a node: when it works, on what, for whom, and how hot it may become."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from dashboard.reading import node_settings as form
from dashboard.views.access import action, person
from dashboard.views.fleet import node_page
from farm.base.refusals import NotAllowed, Refusal
from farm.fleet import selectors, services


@action
def change(request: HttpRequest, node_id: int) -> HttpResponseBase:
    """Keeps the form, or nothing of it: then the page has it as it was typed, with what is wrong beside its field."""
    user = person(request)
    row = selectors.node(user, node_id)
    given = form.typed(request.POST)
    try:
        with transaction.atomic():
            limits = form.limits_of(given)
            services.change_settings(node=row, by=user, tags=form.names(given["tags"]), **limits)
            services.share(node=row, by=user, teams=form.names(given["teams"], sep=","))
        messages.success(request, f"The limits of {row.name} were saved.")
    except NotAllowed as refusal:
        # whoever may not change them has no form to go back to
        messages.error(request, str(refusal))
    except Refusal as refusal:
        fresh = selectors.node(user, node_id)
        return node_page(
            request, fresh, status=refusal.status, limits=given, errors={form.field_of(refusal): str(refusal)}
        )
    return redirect("dashboard:node", node_id=node_id)
