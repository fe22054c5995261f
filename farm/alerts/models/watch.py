"""Watches, their rounds and long series, and the releases of the package index."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from farm.accounts.models import OwnedQuerySet, Team
from farm.alerts.models.stateful import StatefulModel
from farm.alerts.states import VERSIONS, Cause, RoundOutcome, RoundState
from farm.contract.cells import Runtime
from farm.registry.models import Model, Version
from farm.rules.changes.watch_rounds import Rule


class WatchQuerySet(OwnedQuerySet["Watch"]):
    """Queries for watches."""


class Watch(models.Model):
    """An order to measure models again whenever a release, a version or the schedule gives a cause.

    `matrix` has no runtime axis. Each round adds the releases to measure: the pinned reference, the release that was
    measured before, and the new one.
    """

    team = models.ForeignKey(Team, models.CASCADE, related_name="watches")
    name = models.CharField(max_length=100)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    is_active = models.BooleanField(default=True)
    watched = models.ManyToManyField(Model, related_name="watches", blank=True)
    label = models.CharField(max_length=100, blank=True, default="")
    matrix = models.JSONField()
    rule_json = models.JSONField(default=dict)
    distribution = models.CharField(max_length=64, default="onnxruntime")
    reference = models.CharField(max_length=32)
    on_release = models.BooleanField(default=True)
    on_version = models.BooleanField(default=True)
    with_prereleases = models.BooleanField(default=False)
    # whether each new version is also compared with the version before it, in the same blocks
    compares_versions = models.BooleanField(default=False, db_default=False)
    # the schedule as five fields of cron in UTC; empty: none
    schedule = models.CharField(max_length=100, blank=True, default="")
    next_at = models.DateTimeField(null=True, blank=True)
    # the largest id of a version that needs no new round: it is older than the watch, or was looked at
    seen_version = models.PositiveBigIntegerField(default=0)
    channels = models.ManyToManyField("alerts.Channel", related_name="watches", blank=True)
    # why the last round could not be started, in one sentence
    problem = models.CharField(max_length=1000, blank=True, default="")

    objects = WatchQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_watch_per_team_and_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def rule(self) -> Rule:
        return Rule.from_stored(self.rule_json)

    def runtime(self, version: str) -> Runtime:
        return Runtime(distribution=self.distribution, version=version)


class WatchRound(StatefulModel):
    """One measurement of one version for a watch: its run, and the run that confirms its findings.

    A round with a `base` compares two versions of the model; its `distribution` is then VERSIONS, which names no
    package.
    """

    watch = models.ForeignKey(Watch, models.CASCADE, related_name="rounds")
    version = models.ForeignKey(Version, models.CASCADE, related_name="watch_rounds")
    # the version that `version` is compared with; None where two releases are compared
    base = models.ForeignKey(Version, models.CASCADE, null=True, blank=True, related_name="+")
    cause = models.CharField(max_length=10, choices=Cause.choices)
    # identifies the cause, so that the same release, version or scheduled minute opens one round only
    key = models.CharField(max_length=100)
    # the releases that are compared, or with `base` the numbers of the two versions
    old = models.CharField(max_length=32)
    new = models.CharField(max_length=32)
    # the release that every other one is compared with in this round; with `base`, the release of both versions
    pinned = models.CharField(max_length=32)
    state = models.CharField(max_length=12, choices=RoundState.choices, default=RoundState.WAITING)
    outcome = models.CharField(max_length=12, choices=RoundOutcome.choices, default=RoundOutcome.OPEN, blank=True)
    run = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="watch_rounds")
    confirming = models.ForeignKey("runs.Run", models.SET_NULL, null=True, blank=True, related_name="+")
    # whether more rounds of the last run were ordered, because something stayed undecided
    is_extended = models.BooleanField(default=False)
    # findings that wait for their confirmation, as farm.rules.changes.watch_rounds.Finding
    findings = models.JSONField(default=list)
    sentence = models.CharField(max_length=2000, blank=True, default="")
    compared = models.PositiveIntegerField(default=0)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    judged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["watch", "version", "key"], name="one_round_per_cause")]
        indexes = [models.Index(fields=["state"])]

    def __str__(self) -> str:
        return f"{self.watch}: {self.old} → {self.new} of {self.version}"

    @property
    def distribution(self) -> str:
        return VERSIONS if self.base_id is not None else self.watch.distribution

    @property
    def step(self) -> str:
        """The two sides in words, as `1.29.0 → 1.31.1` or `version 1 → version 2`."""
        noun = "" if self.base_id is None else f"{VERSIONS} "
        return f"{noun}{self.old} → {noun}{self.new}"

    @property
    def sides(self) -> tuple[Runtime, Runtime] | tuple[str, str]:
        """The old and the new side: two releases, or two versions of the model by their names in a document."""
        if self.base is not None:
            return str(self.base), str(self.version)
        return self.watch.runtime(self.old), self.watch.runtime(self.new)


class Point(models.Model):
    """One value of a long series: the ratio of a release to the pinned reference, both measured in the same block.

    `metrics` maps further metrics to [ratio, low, high]; it is null where there are none, and in old rounds.
    """

    round = models.ForeignKey(WatchRound, models.CASCADE, related_name="points")
    watch = models.ForeignKey(Watch, models.CASCADE, related_name="points")
    series = models.CharField(max_length=32)
    label = models.CharField(max_length=300)
    node = models.CharField(max_length=64)
    runtime = models.CharField(max_length=100)
    ratio = models.FloatField()
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    p50_ms = models.FloatField(null=True)
    reference_ms = models.FloatField(null=True)
    metrics = models.JSONField(null=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["round", "series", "node", "runtime"], name="one_point_per_round"),
        ]
        indexes = [models.Index(fields=["watch", "series", "node"])]

    def __str__(self) -> str:
        return f"{self.label} on {self.runtime}: ×{self.ratio:.3f}"


class Release(models.Model):
    """A release of a distribution that the package index offers, or did, for this farm's Python and platform."""

    distribution = models.CharField(max_length=64)
    version = models.CharField(max_length=32)
    is_prerelease = models.BooleanField(default=False)
    # the index does not offer it any more: it was yanked or removed
    is_gone = models.BooleanField(default=False)
    # PEP 592: installers still take it where it is pinned; the index's reason may be empty
    is_yanked = models.BooleanField(default=False)
    yanked_because = models.CharField(max_length=200, blank=True, default="")
    seen_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["distribution", "version"], name="one_row_per_release")]

    def __str__(self) -> str:
        return str(self.runtime)

    @property
    def runtime(self) -> Runtime:
        return Runtime(distribution=self.distribution, version=self.version)


class IndexLook(models.Model):
    """When the package index was last asked for a distribution, and why that failed, in one sentence.

    `distribution` is followed by `@NAME` where an added index of that name was asked.
    """

    distribution = models.CharField(max_length=64, unique=True)
    looked_at = models.DateTimeField(null=True)
    # whether a worker is asking the index: from its claim until the answer is stored
    is_being_asked = models.BooleanField(default=False, db_default=False)
    problem = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["distribution"]

    def __str__(self) -> str:
        return f"look for {self.distribution}"
