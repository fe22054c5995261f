"""The owner's limits on a node: when it works, on what, for whom, and how hot it may become."""

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.views.access import page, person
from farm.accounts.refusals import Invalid, Refusal
from farm.fleet import selectors, services

GIB = 1024**3
MOST_DIGITS = 12


@page
@require_POST
def change(request: HttpRequest, node_id: int) -> HttpResponseBase:
    """Keeps the form; what is out of range is said on the node's page, and nothing of the form is kept then."""
    found = selectors.node(person(request), node_id)
    try:
        with transaction.atomic():
            services.change_settings(node=found, by=person(request), tags=_names(request, "tags"), **_typed(request))
            services.share(node=found, by=person(request), teams=_names(request, "teams", sep=","))
        messages.success(request, f"The limits of {found.name} are kept.", extra_tags="good")
    except Refusal as refusal:
        messages.error(request, str(refusal), extra_tags="bad")
    return redirect("dashboard:node", node_id=node_id)


def shown(node: Any) -> dict[str, Any]:
    """The limits as the form has them: minutes, GiB, empty where there is none."""
    limits = node.settings
    return {
        "is_paused": limits.is_paused,
        "hours": limits.hours,
        "timezone": limits.timezone,
        "minutes": f"{limits.max_block_s / 60:g}",
        "temperature": "" if limits.max_temperature_c is None else f"{limits.max_temperature_c:g}",
        "cache": f"{limits.cache_bytes / GIB:g}",
        "runtimes": f"{limits.runtimes_bytes / GIB:g}",
        "tags": " ".join(node.owner_tags),
        "teams": ", ".join(team.name for team in node.shared_with.all()),
    }


def _typed(request: HttpRequest) -> dict[str, Any]:
    form = request.POST
    return {
        "is_paused": form.get("is_paused") == "yes",
        "hours": form.get("hours", "").replace(" ", "").replace("–", "-"),
        "timezone": form.get("timezone", "").strip() or "UTC",
        "max_block_s": _number(request, "minutes", "longest block") * 60,
        "max_temperature_c": _number(request, "temperature", "temperature") if form.get("temperature") else None,
        "cache_bytes": int(_number(request, "cache", "cache") * GIB),
        "runtimes_bytes": int(_number(request, "runtimes", "runtimes") * GIB),
    }


def _number(request: HttpRequest, field: str, label: str) -> float:
    """A number as people write it. Raises Invalid."""
    text = request.POST.get(field, "").strip().replace(",", ".")
    is_number = text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) <= MOST_DIGITS
    if not is_number:
        raise Invalid(f"The {label} is “{text[:20]}”: write a number.", code="bad_number")
    return float(text)


def _names(request: HttpRequest, field: str, *, sep: str | None = None) -> list[str]:
    return [name.strip() for name in request.POST.get(field, "").split(sep) if name.strip()]
