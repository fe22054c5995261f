"""States of rounds, alerts, investigations and deliveries, and the arrows between them. docs/watch.md tells them."""

from django.db import models


class Cause(models.TextChoices):
    """Why a watch measures."""

    RELEASE = "release", "a new release of the runtime"
    VERSION = "version", "a new version of the model"
    SCHEDULE = "schedule", "the schedule"
    CALL = "call", "a call"


class RoundState(models.TextChoices):
    """waiting → measuring → confirming → judged; measuring → judged where nothing has to be confirmed."""

    WAITING = "waiting"
    MEASURING = "measuring"
    CONFIRMING = "confirming"
    JUDGED = "judged"


class RoundOutcome(models.TextChoices):
    """What a judged round came to. `unconfirmed`: a fresh block did not show it again."""

    OPEN = "", "open"
    ALERT = "alert"
    INFRA = "infra"
    UNDECIDED = "undecided"
    UNCONFIRMED = "unconfirmed"
    NEWS = "news"
    QUIET = "quiet"


class AlertState(models.TextChoices):
    """open → acknowledged → resolved | invalid | infra; each of them may be opened again; open or acknowledged alerts
    may be snoozed, which is a mark beside the state."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    INVALID = "invalid"
    INFRA = "infra"


class AlertEventKind(models.TextChoices):
    """What an alert's log tells."""

    OPENED = "opened"
    SEEN_AGAIN = "seen_again"
    WIDENED = "widened"
    REOPENED = "reopened"
    ACKNOWLEDGED = "acknowledged"
    SNOOZED = "snoozed"
    WOKEN = "woken"
    RESOLVED = "resolved"
    INVALID = "invalid"
    INFRA = "infra"
    EXPLAINED = "explained"
    NOTE = "note"


class InvestigationKind(models.TextChoices):
    """What is asked of an alert by measuring more."""

    SINCE_WHEN = "since_when"
    WORK_AROUND = "work_around"


class InvestigationState(models.TextChoices):
    """waiting → measuring → waiting … → answered | failed. One run a step."""

    WAITING = "waiting"
    MEASURING = "measuring"
    ANSWERED = "answered"
    FAILED = "failed"


class DigestEvery(models.TextChoices):
    """How often a channel gets a digest."""

    NEVER = "never"
    DAY = "day"
    WEEK = "week"


class DeliveryState(models.TextChoices):
    """waiting → sending → sent | waiting | failed. A sender that died leaves `sending`, which is taken again later."""

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


# in the place of a distribution: what moved is the model
VERSIONS = "version"

OPEN_ALERTS = (AlertState.OPEN, AlertState.ACKNOWLEDGED)
CLOSED_ALERTS = (AlertState.RESOLVED, AlertState.INVALID, AlertState.INFRA)
OPEN_INVESTIGATIONS = (InvestigationState.WAITING, InvestigationState.MEASURING)

# from which states an alert may go to each state
ALERT_ARROWS: dict[AlertState, tuple[AlertState, ...]] = {
    AlertState.OPEN: (AlertState.ACKNOWLEDGED, *CLOSED_ALERTS),
    AlertState.ACKNOWLEDGED: (AlertState.OPEN,),
    # the farm measures again
    AlertState.RESOLVED: (*OPEN_ALERTS, AlertState.INFRA),
    AlertState.INVALID: OPEN_ALERTS,
    # the farm cannot measure again
    AlertState.INFRA: (*OPEN_ALERTS, AlertState.RESOLVED),
}

# what channels are told of, unless they ask for less
ANNOUNCED = (
    AlertEventKind.OPENED,
    AlertEventKind.REOPENED,
    AlertEventKind.WIDENED,
    AlertEventKind.WOKEN,
    AlertEventKind.RESOLVED,
    AlertEventKind.EXPLAINED,
    AlertEventKind.INFRA,
)
