"""What the page of a model shows of its watches."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.conf import settings

from dashboard.cache import kept
from dashboard.figures.lines import Line
from dashboard.reading import standings as reading
from dashboard.reading import trends
from farm.alerts.selectors import badges, pages

if TYPE_CHECKING:
    from farm.alerts.models import Watch
    from farm.registry.models import Model

WATCHES_SHOWN = 10
# values of a small line in a list
SPOTS = 40


def of_model(model: "Model") -> dict[str, object]:
    """The model's series by watch, its badge, and the text that shows the badge elsewhere."""
    watches = pages.watches_of_model(model)
    shown = [reading.watched(watch, _lines(watch, model)) for watch in watches[:WATCHES_SHOWN]]
    said = badges.standing_of(model)
    badge = f"/api/v1/badges/{model.pk}/{badges.badge_key(model.pk)}.svg"
    words = f"{said.label}: {said.text}"
    markdown = f"[![{words}]({settings.PUBLIC_URL}{badge})]({settings.PUBLIC_URL}/models/{model.pk}/)"
    return {
        "watched": shown,
        "badge": badge,
        "badge_words": words,
        "markdown": markdown,
        "watch_command": f"onnxfarm watch add upgrades --model {model.pk} --reference 1.29.0",
    }


def _lines(watch: "Watch", model: "Model") -> list[Line]:
    return trends.lines(watch, pages.points_of_model(watch, model), pages.alerts_of_watch(watch).filter(model=model))


def standings(models: Iterable["Model"]) -> dict[int, reading.Standing]:
    """How each of these models stands by its watches, by its number; kept until any long series gets a value."""
    numbers = tuple(model.pk for model in models)
    return kept(
        "pieces",
        "standings",
        pages.newest_of_all(),
        numbers,
        make=lambda: reading.standings(pages.newest_values(numbers, most=SPOTS)),
    )
