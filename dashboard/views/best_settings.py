"""The panel of best settings on a model's page."""

from typing import TYPE_CHECKING

from django.http import HttpRequest

from dashboard.reading import best_settings as reading
from dashboard.views.access import person
from farm.runs.selectors.best import measured_settings

if TYPE_CHECKING:
    from farm.registry.models import Model


def of_model(request: HttpRequest, model: "Model") -> dict[str, object]:
    """The best settings within the budget that the address names."""
    version, settings = measured_settings(person(request), model)
    return {"best": reading.panel(version, settings, request.GET.get("budget", "")[:40])}
