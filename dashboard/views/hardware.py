"""One model across hardware: where it was measured, and where it may run."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.reading import file_rows
from dashboard.reading import hardware as reading
from dashboard.views import downloads
from dashboard.views.access import page, person
from farm.accounts.selectors import can_write
from farm.registry import selectors
from farm.rules.presenting.hardware import Measured
from farm.runs.selectors.hardware import measured_across


@page
def hardware(request: HttpRequest, model_id: int) -> HttpResponse:
    """The best settings of each version on every target, and the answer to the question that the address asks."""
    user = person(request)
    model = selectors.model(user, model_id)
    panel = reading.panel(measured_across(user, model), reading.read(request.GET.dict()), address_of)
    if downloads.is_wanted(request):
        return downloads.as_file(request, "hardware", panel.shown, file_rows.target)
    may_write = can_write(user, team=model.team)
    choices = {"goals": [*reading.GOALS.items()], "ways": [*reading.WAYS.items()]}
    context = {"model": model, "may_write": may_write, "panel": panel, "asked": panel.asked, **choices}
    return render(request, "dashboard/hardware.html", context)


def address_of(one: Measured) -> str:
    """The page of the cell that a setting was measured as."""
    return reverse("dashboard:cell", args=[one.run, one.cell.id])
