"""What a watch measures next: which versions, and which releases beside each other."""

from farm.alerts.models import Alert, Watch, WatchRound
from farm.alerts.selectors.releases import newest
from farm.alerts.states import Cause, RoundOutcome, RoundState
from farm.registry.models import Model, Version
from farm.registry.states import VersionState

# rounds that say which release a model was last measured with
_MEASURED = (
    RoundOutcome.ALERT,
    RoundOutcome.UNCONFIRMED,
    RoundOutcome.UNDECIDED,
    RoundOutcome.NEWS,
    RoundOutcome.QUIET,
)
# baselines of unsettled alerts that are measured along, so that they can be resolved
MOST_BASELINES = 2


def watched_models(watch: Watch) -> list[Model]:
    """The watch's own models and those with its label, by name, without those that were deleted."""
    own = {model.pk: model for model in watch.watched.all() if model.removed_at is None}
    if watch.label:
        # JSON lists cannot be searched alike in every database, and a team's models are few
        labelled = [one for one in Model.objects.kept().filter(team=watch.team_id) if watch.label in one.labels]
        own |= {model.pk: model for model in labelled}
    return sorted(own.values(), key=lambda model: model.name)


def newest_version(model: Model) -> Version | None:
    """The model's newest version that can be measured."""
    return Version.objects.kept().filter(model=model, state=VersionState.READY).order_by("-number").first()


def last_release(watch: Watch, model: Model) -> str:
    """The release that the model was last measured with for this watch; the reference before its first round."""
    rounds = WatchRound.objects.filter(
        watch=watch, version__model=model, state=RoundState.JUDGED, outcome__in=_MEASURED, compared__gt=0
    ).exclude(cause=Cause.CALL)
    return rounds.order_by("-judged_at").values_list("new", flat=True).first() or watch.reference


def newest_release(watch: Watch) -> str | None:
    """The newest release of what is watched; None when none is known."""
    return newest(watch.distribution, reference=watch.reference, with_prereleases=watch.with_prereleases)


def baselines(watch: Watch, model: Model) -> list[str]:
    """Releases that unsettled alerts of the model compare with."""
    rows = Alert.objects.unsettled().filter(watch=watch, model=model, distribution=watch.distribution)
    return list(dict.fromkeys(rows.exclude(node="").order_by("-pk").values_list("good", flat=True)))[:MOST_BASELINES]
