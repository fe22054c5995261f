"""States of rounds, alerts, investigations, deliveries and their arrows. docs/reference/states.md lists them."""

from django.db import models


class Cause(models.TextChoices):
    """Why a watch measures."""

    RELEASE = "release", "a new release of the runtime"
    VERSION = "version", "a new version of the model"
    SCHEDULE = "schedule", "the schedule"
    CALL = "call", "a call"


class RoundState(models.TextChoices):
    """waiting → measuring → confirming → judged; measuring → judged where nothing has to be confirmed."""

    WAITING = "waiting"  # for a release, a version or its turn
    MEASURING = "measuring"  # its run measures
    CONFIRMING = "confirming"  # a fresh block has to show again what was found
    JUDGED = "judged"  # it has an outcome


class RoundOutcome(models.TextChoices):
    """The result of a judged round."""

    OPEN = "", "open"  # not judged
    ALERT = "alert"  # something that somebody must look at
    INFRA = "infra"  # the farm could not measure; an alert in the state `infra` says why
    UNDECIDED = "undecided"  # no verdict, also of the fresh block, after more rounds were measured once
    UNCONFIRMED = "unconfirmed"  # a fresh block contradicts it: equal, faster, or within the rule
    NEWS = "news"  # better than before
    QUIET = "quiet"  # nothing


class AlertState(models.TextChoices):
    """The state of an alert: open → acknowledged → resolved | invalid | infra.

    All but open alerts may be opened again. Open and acknowledged alerts may be snoozed, a mark beside the state.
    """

    OPEN = "open"  # somebody must look at it
    ACKNOWLEDGED = "acknowledged"  # somebody does
    RESOLVED = "resolved"  # a later release or version is equal to or faster than the good one
    INVALID = "invalid"  # a false positive, a person said
    INFRA = "infra"  # the fault of a machine or of the farm


class AlertEventKind(models.TextChoices):
    """The kinds of entries in an alert's log."""

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
    """What an investigation searches for: the first bad release, or session options that undo the change."""

    SINCE_WHEN = "since_when"
    WORK_AROUND = "work_around"


class InvestigationState(models.TextChoices):
    """waiting → measuring → waiting … → answered | failed. One run a step."""

    WAITING = "waiting"
    MEASURING = "measuring"
    ANSWERED = "answered"
    FAILED = "failed"


class FindState(models.TextChoices):
    """waiting → measuring → waiting … → answered | failed | cancelled. One run a step."""

    WAITING = "waiting"  # for its next run to be started
    MEASURING = "measuring"  # a run measures a block of the race
    ANSWERED = "answered"  # decided or not, as the answer says
    FAILED = "failed"  # it could not go on
    CANCELLED = "cancelled"  # with the best so far


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


# the `distribution` of rounds and alerts that compare two versions of a model
VERSIONS = "version"

OPEN_ALERTS = (AlertState.OPEN, AlertState.ACKNOWLEDGED)
CLOSED_ALERTS = (AlertState.RESOLVED, AlertState.INVALID, AlertState.INFRA)
OPEN_FINDS = (FindState.WAITING, FindState.MEASURING)
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

# kinds of log entries that are sent to channels
ANNOUNCED = (
    AlertEventKind.OPENED,
    AlertEventKind.REOPENED,
    AlertEventKind.WIDENED,
    AlertEventKind.WOKEN,
    AlertEventKind.RESOLVED,
    AlertEventKind.EXPLAINED,
    AlertEventKind.INFRA,
)
