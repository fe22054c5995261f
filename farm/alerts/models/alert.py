"""Alerts with their symptoms, their log, and the investigations of their cause."""

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import OwnedQuerySet, Team
from farm.alerts.models.stateful import StatefulModel
from farm.alerts.models.watch import Watch, WatchRound
from farm.alerts.states import (
    ALERT_ARROWS,
    OPEN_ALERTS,
    VERSIONS,
    AlertEventKind,
    AlertState,
    InvestigationKind,
    InvestigationState,
)
from farm.contract.cells import Runtime
from farm.registry.models import Model, Version
from farm.rules.findings.kinds import rank
from farm.rules.runtimes import pairs
from farm.rules.runtimes.order import is_downgrade
from farm.rules.wording import titles

if TYPE_CHECKING:
    from farm.accounts.models import User


class AlertQuerySet(OwnedQuerySet["Alert"]):
    """Queries for alerts."""

    def open_or_acknowledged(self) -> Self:
        return self.filter(state__in=OPEN_ALERTS)


class Alert(models.Model):
    """One level shift of a model between two releases, or two versions of the model; its symptoms name the series.

    `distribution` is VERSIONS where the alert compares two versions of the model (`is_of_versions`). An alert without a
    `node` says that the farm could not measure. `changed_packages` are those of two watched together that differ
    between `good` and `bad`; empty where one package is watched. `is_snoozed` does not look at the state, and stays
    True until an alert that waits for a release is woken. `log` cuts the text to 2,000 characters, and announces
    nothing.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="alerts")
    watch = models.ForeignKey(Watch, models.CASCADE, related_name="alerts")
    model = models.ForeignKey(Model, models.CASCADE, related_name="alerts")
    version = models.ForeignKey(Version, models.CASCADE, related_name="alerts")
    # empty when nothing was measured
    node = models.CharField(max_length=64, blank=True, default="")
    hardware = models.CharField(max_length=200, blank=True, default="")
    distribution = models.CharField(max_length=64)
    # the last release without the shift, and the release that showed it
    good = models.CharField(max_length=32)
    bad = models.CharField(max_length=32)
    # the first bad release as bisection found it; empty: not found yet
    first_bad = models.CharField(max_length=32, blank=True, default="")
    # the nearest good and bad releases that bisection has measured; empty before its first measurement
    last_good = models.CharField(max_length=32, blank=True, default="", db_default="")
    earliest_bad = models.CharField(max_length=32, blank=True, default="", db_default="")
    state = models.CharField(max_length=12, choices=AlertState.choices, default=AlertState.OPEN)
    sentence = models.CharField(max_length=2000)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    note = models.TextField(blank=True, default="")
    snoozed_until = models.DateTimeField(null=True, blank=True)
    # the alert wakes once this release or a later one is measured; empty: it does not wait for a release
    snoozed_for = models.CharField(max_length=32, blank=True, default="")
    resolved_in = models.CharField(max_length=32, blank=True, default="")
    round = models.ForeignKey(WatchRound, models.SET_NULL, null=True, related_name="alerts")
    opened_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now)

    objects = AlertQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["watch", "model", "node", "distribution", "bad"], name="one_alert_per_level_shift"
            )
        ]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"alert {self.pk}"

    @property
    def release(self) -> str:
        """The first bad release or, before bisection found it, the bad one, as `distribution==version`."""
        return f"{self.distribution}=={self.first_bad or self.bad}"

    @property
    def since_phrase(self) -> str:
        """When the shift began, in words: “since 1.31.0” where bisection found it, or “between 1.30.0 and 1.31.0”."""
        bounds = {"good": self.last_good or self.good, "bad": self.earliest_bad or self.bad}
        return titles.format_since(self.distribution, **bounds, first_bad=self.first_bad)

    @property
    def since_sentence(self) -> str:
        """`since_phrase`, capitalised; empty where nothing was measured, or where the bad release is the older one."""
        is_measured = self.node and not is_downgrade(self.good, self.bad)
        return f"{self.since_phrase[:1].upper()}{self.since_phrase[1:]}" if is_measured else ""

    @property
    def is_of_versions(self) -> bool:
        return self.distribution == VERSIONS

    @property
    def nodes(self) -> list[str]:
        """The nodes with a symptom, resolved or not: the one where the shift was found, then the others by name."""
        names = [self.node, *sorted(symptom.node for symptom in self.symptoms.all())]
        return [name for name in dict.fromkeys(names) if name]

    def symptoms_by_weight(self) -> "list[Symptom]":
        """Return all symptoms of the alert, the weightiest first.

        Unresolved symptoms come before resolved ones, then those on the alert's own node, then the graver kind, then
        the larger size.
        """

        def weight(symptom: "Symptom") -> tuple[bool, bool, int, float]:
            is_elsewhere = symptom.node != self.node
            return bool(symptom.resolved_in), is_elsewhere, rank(symptom.kind), -(symptom.size or 0.0)

        return sorted(self.symptoms.all(), key=weight)

    @property
    def leading_symptom(self) -> "Symptom | None":
        """The first of `symptoms_by_weight`, a resolved one where all are; None where the alert has no symptoms."""
        return next(iter(self.symptoms_by_weight()), None)

    @property
    def changed_packages(self) -> tuple[str, ...]:
        good, bad = (Runtime(distribution=self.distribution, version=version) for version in (self.good, self.bad))
        return pairs.moved_packages(good, bad)

    @property
    def is_snoozed(self) -> bool:
        return bool(self.snoozed_for) or (self.snoozed_until is not None and self.snoozed_until > timezone.now())

    def log(self, kind: AlertEventKind, text: str, *, actor: "User | None" = None, **facts: object) -> "AlertEvent":
        return AlertEvent.objects.create(alert=self, kind=kind, text=text[:2000], actor=actor, facts=facts)

    def change(self, state: AlertState, **changes: object) -> bool:
        """Move the alert to a state, and write the columns `changes` too, in one conditional UPDATE. Log nothing.

        Return False, with nothing written, where ALERT_ARROWS does not allow that move from the state in the database.
        """
        rows = Alert.objects.filter(pk=self.pk, state__in=ALERT_ARROWS[state])
        if not rows.update(state=state, changed_at=timezone.now(), **changes):
            return False
        self.state = state
        for name, value in changes.items():
            setattr(self, name, value)
        return True


class Symptom(models.Model):
    """One kind of change of one series on one node, with the comparison that shows it."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="symptoms")
    node = models.CharField(max_length=64, blank=True, default="", db_default="")
    series = models.CharField(max_length=32)
    label = models.CharField(max_length=300)
    kind = models.CharField(max_length=32)
    text = models.CharField(max_length=2000)
    size = models.FloatField(null=True)
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, related_name="+")
    # the names of the two compared cells in the run
    baseline = models.CharField(max_length=40)
    cell = models.CharField(max_length=40)
    comparison = models.JSONField(null=True)
    # `‹operator›: k nodes, a → b µs, explains p % of the change`
    explanation = models.CharField(max_length=500, blank=True, default="")
    resolved_in = models.CharField(max_length=32, blank=True, default="")
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["alert", "node", "series", "kind"], name="one_symptom_per_kind")]
        indexes = [models.Index(fields=["series", "kind"])]

    def __str__(self) -> str:
        return f"{self.kind}: {self.label}"


class AlertEvent(models.Model):
    """One line of an alert's log; the services write one for every change of state. Some kinds go to channels."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=12, choices=AlertEventKind.choices)
    text = models.CharField(max_length=2000)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Investigation(StatefulModel):
    """A search for an alert's first bad release, or for session options that undo the change. Each step is one run."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="investigations")
    kind = models.CharField(max_length=12, choices=InvestigationKind.choices)
    state = models.CharField(max_length=10, choices=InvestigationState.choices, default=InvestigationState.WAITING)
    symptom = models.ForeignKey(Symptom, models.CASCADE, related_name="+")
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="+")
    # what a person asked for, and what the current run measures: a release, or candidates
    asked = models.JSONField(null=True)
    # the measurements so far
    steps = models.JSONField(default=list)
    # the result, whose keys depend on the kind
    answer = models.JSONField(null=True)
    sentence = models.CharField(max_length=2000, blank=True, default="")
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "kind"],
                condition=models.Q(state__in=("waiting", "measuring")),
                name="one_open_investigation_per_kind",
            )
        ]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"{self.kind} of {self.alert}"
