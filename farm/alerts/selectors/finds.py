"""Reads searches for the settings to ship. A search is one race for each kind of hardware; its first race names it.

Only `find_first_race` checks who may see the search.
"""

from dataclasses import dataclass

from django.conf import settings

from farm.accounts.selectors import Anyone
from farm.alerts.models import Find
from farm.base.refusals import Missing
from farm.contract.document_find import DECIDED, Found, FoundSetting
from farm.rules.searches.race_document import NEAR, find_shared_setting
from farm.rules.wording.numbers import percent
from farm.runs.models import Run
from farm.runs.selectors.outlooks import outlook_without_forecast


@dataclass(frozen=True, slots=True)
class RaceSummary:
    """The races of a search, beginning with the first, and their common result.

    `everywhere` is the setting to use on all hardware; None where there is none, and for a single race. `is_open`: any
    of the races goes on.
    """

    races: list[Find]
    sentence: str
    everywhere: FoundSetting | None = None

    @property
    def is_open(self) -> bool:
        return any(race.is_open for race in self.races)


def find_first_race(user: Anyone, find_id: int) -> Find:
    """Return the first race of the search that this race belongs to. Raises Missing where the user may not see it."""
    rows = Find.objects.visible_to(user).select_related("version__model__team", "first")
    row = rows.filter(pk=find_id).first()
    if row is None:
        raise Missing(f"There is no search for settings {find_id} that you can access.")
    return row.first or row


def find_newest_search_with_answer(version_id: int) -> Find | None:
    """Find the newest search whose first race has an answer, which may be the best so far of a race that goes on."""
    rows = Find.objects.filter(version=version_id, first=None).exclude(answer=None)
    return rows.order_by("-pk").first()


def list_races(first: Find) -> list[Find]:
    rows = Find.objects.select_related("version__model__team", "version__artifact", "asked_by", "run")
    return [*rows.filter(pk=first.pk), *rows.filter(first=first.pk)]


def describe_progress(race: Find) -> str:
    """Say what an open race measures now, and why its run waits, if it does; empty where the race is over."""
    if race.run_id is None:
        return "waiting for its next run" if race.is_open else ""
    title, wait = (race.asked or {}).get("title", ""), outlook_without_forecast(race.run_id).idle_reason
    return ". ".join(filter(None, (title, wait)))


def find_last_run(race: Find) -> Run | None:
    """Return the run of a race's last finished step; None before the first step, or where the run was removed."""
    return Run.objects.filter(pk=race.steps[-1]["run"]).first() if race.steps else None


def summarise_races(first: Find) -> RaceSummary:
    """Return the races of a search with a sentence about all of them.

    A search with a single race has the sentence of that race. With several races the sentence is empty until all are
    over with an answer.
    """
    races = list_races(first)
    answers = [Found.model_validate(race.answer) for race in races if race.answer is not None]
    if len(races) == 1 or len(answers) < len(races) or any(race.is_open for race in races):
        return RaceSummary(races, races[0].sentence if len(races) == 1 else "")
    if any(answer.state not in DECIDED for answer in answers):
        return RaceSummary(races, "Not every race is decided, so there is no setting for all hardware.")
    everywhere = find_shared_setting(answers)
    if everywhere is None:
        return RaceSummary(races, f"No setting is within {percent(NEAR)} of the best on all hardware.")
    return RaceSummary(races, f"{everywhere.label} is within {percent(NEAR)} of the best on all hardware.", everywhere)


def address_of(first: Find) -> str:
    return f"{settings.PUBLIC_URL}/finds/{first.pk}/"
