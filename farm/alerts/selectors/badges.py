"""Describes in a few words what the watches of a model found, for its badge."""

from typing import NamedTuple

from django.db.models import F
from django.utils.crypto import constant_time_compare, salted_hmac

from farm.alerts.models import Alert, WatchRound
from farm.alerts.selectors.pages import watches_of_model
from farm.alerts.states import AlertState, RoundOutcome, RoundState
from farm.base.refusals import Missing
from farm.registry.models import Model
from farm.rules.presenting.badge import Tone
from farm.rules.runtimes.order import is_downgrade
from farm.rules.wording.numbers import counted

# characters of a badge's key
KEY_SIGNS = 32
# how many of the newest rounds are searched for a round whose candidate is newer than its baseline
NEWEST_ROUNDS = 20
_TONES: dict[str, tuple[Tone, str]] = {
    RoundOutcome.QUIET: ("good", "{} as before"),
    RoundOutcome.NEWS: ("good", "{} better"),
    RoundOutcome.UNCONFIRMED: ("good", "{} as before"),
    RoundOutcome.UNDECIDED: ("unsure", "{} undecided"),
    RoundOutcome.INFRA: ("unknown", "{} not measured"),
    # the alert of this round was settled; an unsettled one is described instead of the round
    RoundOutcome.ALERT: ("unsure", "{} reviewed"),
}


class ModelStatus(NamedTuple):
    """The result of a model's watches, as its badge shows it."""

    # the watched distribution; `onnxfarm` where there is no result
    label: str
    # the result for the model
    text: str
    tone: Tone


def describe_model_status(model: Model) -> ModelStatus:
    """Describe a model's unsettled alerts; without any, its newest round that was judged or waits for confirmation.

    Acknowledged and snoozed alerts count too. Alerts and rounds whose candidate is older than their baseline do not
    count, nor do rounds that compare versions of the model. Only the NEWEST_ROUNDS newest rounds are searched.
    """
    rows = Alert.objects.open_or_acknowledged().filter(model=model).prefetch_related("symptoms").order_by("-pk")
    alerts = [alert for alert in rows if not is_downgrade(alert.good, alert.bad)]
    if alerts:
        newest = alerts[0]
        kinds = dict.fromkeys(
            symptom.kind for alert in alerts for symptom in alert.symptoms.all() if not symptom.resolved_in
        )
        count = f", {counted(len(alerts), 'alert')}" if len(alerts) > 1 else ""
        text = f"{', '.join(kinds) or 'alert'} {newest.since_phrase}{count}"
        return ModelStatus(newest.distribution, text, "bad")
    with_result = (RoundState.CONFIRMING, RoundState.JUDGED)
    rounds = WatchRound.objects.filter(version__model=model, base=None, state__in=with_result).select_related("watch")
    in_order = rounds.order_by(F("judged_at").desc(nulls_first=True))
    newest_first = in_order.defer("findings", "watch__matrix")[:NEWEST_ROUNDS]
    last = next((row for row in newest_first if not is_downgrade(row.old, row.new)), None)
    if last is None:
        return ModelStatus("onnxfarm", "no result yet" if watches_of_model(model) else "not watched yet", "unknown")
    if last.state == RoundState.CONFIRMING:
        return ModelStatus(last.watch.distribution, f"{last.new} to be confirmed", "unsure")
    # a round that the farm could not measure must not look like a fault of the model
    is_infra = Alert.objects.filter(model=model, state=AlertState.INFRA, round=last).exists()
    tone, text = _TONES[RoundOutcome.INFRA if is_infra else RoundOutcome(last.outcome)]
    return ModelStatus(last.watch.distribution, text.format(last.new), tone)


def badge_key(model_id: int) -> str:
    """Derive the key in the address of a model's badge, by which anybody may see it, from the farm's secret key."""
    return salted_hmac("farm.alerts.badge", str(model_id), algorithm="sha256").hexdigest()[:KEY_SIGNS]


def find_badge_model(model_id: int, key: str) -> Model:
    """Return the model of a badge. Raises Missing, with the same text, for an unknown model and for a wrong key."""
    model = Model.objects.filter(pk=model_id).first()
    if model is None or not constant_time_compare(key, badge_key(model_id)):
        raise Missing("There is no such badge.", hint="A model's own is named at /api/v1/models/‹number›/badge.")
    return model
